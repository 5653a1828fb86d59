//! Reads the data files at compile time.

/// The columns of one line, up to seven.
pub(crate) type Columns = [&'static [u8]; 7];

/// Returns the number of lines.
pub(crate) const fn count(data: &[u8]) -> usize {
    let (mut lines, mut at) = (0, 0);
    while at < data.len() {
        if data[at] == b'\n' {
            lines += 1;
        }
        at += 1;
    }
    lines
}

/// Splits data into its lines, each of which ends with a line feed, and those at their tabs.
pub(crate) const fn lines<const N: usize>(data: &'static [u8]) -> [Columns; N] {
    let mut lines: [Columns; N] = [[&[]; 7]; N];
    let (mut line, mut column, mut from, mut at) = (0, 0, 0, 0);
    while at < data.len() {
        let end = data[at] == b'\n';
        if end || data[at] == b'\t' {
            lines[line][column] = slice(data, from, at);
            column += 1;
            from = at + 1;
        }
        if end {
            line += 1;
            column = 0;
        }
        at += 1;
    }
    lines
}

const fn slice(data: &[u8], from: usize, to: usize) -> &[u8] {
    data.split_at(to).0.split_at(from).1
}

/// Returns whether two texts are equal.
pub(crate) const fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}

/// Returns the decimal number that `text` starts with.
pub(crate) const fn number(text: &[u8]) -> i64 {
    let negative = !text.is_empty() && text[0] == b'-';
    let mut i = if negative { 1 } else { 0 };
    assert!(i < text.len() && text[i].is_ascii_digit(), "no number");
    let mut value = 0;
    while i < text.len() && text[i].is_ascii_digit() {
        value = value * 10 + (text[i] - b'0') as i64;
        i += 1;
    }
    if negative { -value } else { value }
}
