//! Generates extreme values from a layout: the bytes of a fixed part and the text of their `Debug` output.

use hipr_proto::Layout;

/// Extreme values of numbers, whose low bits are used: 0, 1, the largest, the sign alone, the largest with a sign; for
/// floats the smallest, infinity, and both kinds of NaN.
pub(crate) const EDGES: [u64; 10] = [
    0,
    1,
    u64::MAX,
    0x8000_0000_8000_8080,
    0x8000_0000_0000_0000,
    0x7fff_ffff_7fff_7f7f,
    0x7f80_0000,
    0xff80_0000,
    0x7f80_0001,
    0x7fc0_0001,
];

/// Appends a value of `layout` whose numbers are `next()` to `out`, and its `Debug` output without type names to `text`.
pub(crate) fn put(layout: &Layout, next: &mut dyn FnMut() -> u64, out: &mut Vec<u8>, text: &mut String) {
    match layout {
        Layout::Number(name) => {
            let bits = next();
            let (size, said) = match *name {
                "u8" => (1, (bits as u8).to_string()),
                "u16" => (2, (bits as u16).to_string()),
                "u32" => (4, (bits as u32).to_string()),
                "u64" => (8, bits.to_string()),
                "i32" => (4, (bits as u32 as i32).to_string()),
                "f32" => (4, format!("{:?}", f32::from_bits(bits as u32))),
                other => panic!("{other} is no number of the protocol"),
            };
            out.extend_from_slice(&bits.to_le_bytes()[..size]);
            text.push_str(&said);
        }
        // Empty, short, full but for the NUL, full, not UTF-8, and rubbish behind the NUL.
        Layout::Text(n) => {
            let (text_bytes, padding) = match next() % 6 {
                0 => (Vec::new(), 0),
                1 => (b"a".to_vec(), 0),
                2 => (vec![b'b'; n - 1], 0),
                3 => (vec![b'c'; *n], 0),
                4 => (b"d\xff".to_vec(), 0),
                _ => (b"e\0".to_vec(), 0xee),
            };
            let start = out.len();
            out.extend_from_slice(&text_bytes);
            out.resize(start + n, padding);
            let valid = text_bytes.split(|byte| matches!(byte, 0 | 0xff)).next().unwrap_or(&[]);
            text.push_str(&format!("{:?}", String::from_utf8_lossy(valid)));
        }
        Layout::Array(of, n) => {
            text.push('[');
            for i in 0..*n {
                text.push_str(if i == 0 { "" } else { "," });
                put(of, next, out, text);
            }
            text.push(']');
        }
        Layout::Fields(fields) => {
            text.push_str(if fields.is_empty() { "" } else { "{" });
            for (i, field) in fields.iter().enumerate() {
                text.push_str(if i == 0 { "" } else { "," });
                text.push_str(&format!("{}:", field.name));
                put(&field.layout, next, out, text);
            }
            text.push_str(if fields.is_empty() { "" } else { "}" });
        }
    }
}

/// Encodes a value of `layout` whose numbers are all `number`.
pub(crate) fn all(layout: &Layout, number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put(layout, &mut || number, &mut out, &mut String::new());
    out
}

/// Removes spaces and type names from a `Debug` output.
pub(crate) fn without_types(said: &str) -> String {
    let (mut out, mut quoted, mut in_type) = (String::new(), false, false);
    for c in said.chars() {
        quoted ^= c == '"';
        in_type = !quoted && (c.is_ascii_uppercase() || in_type && c.is_ascii_alphanumeric());
        if quoted || !(in_type || matches!(c, ' ' | '(' | ')')) {
            out.push(c);
        }
    }
    out
}
