//! What a kernel prints: C's `printf` with the arguments that AMD's device library has put into a message.
//!
//! A message is a word with the stream in bit 0 (1 is standard error), the format, and the arguments: a word each, a string with its NUL, both
//! padded to whole words. Each conversion is made by the C library, so that numbers look as a program's own do.

use std::ffi::{CString, c_char, c_int};
use std::iter;

/// Maximum bytes of a printed text; C's `printf` need not print more than 4095 bytes of one conversion.
const TEXT_MAX_BYTES: usize = 1 << 20;
/// Maximum width and precision of a conversion.
const FIELD_MAX: i64 = 16 << 10;

/// What a message prints.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Printed {
    pub(super) is_error: bool,
    pub(super) text: Vec<u8>,
}

/// The words of a message that no conversion has taken yet.
struct Args<'a>(&'a [u64]);

impl Args<'_> {
    fn word(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// Takes the words of a string.
    fn string(&mut self) -> Vec<u8> {
        let bytes: Vec<u8> =
            self.0.iter().flat_map(|word| word.to_le_bytes()).take_while(|byte| *byte != 0).collect();
        self.0 = self.0.get(bytes.len() / 8 + 1..).unwrap_or_default();
        bytes
    }
}

/// A conversion of a format, without its length.
#[derive(Debug, Default)]
struct Conversion {
    flags: Vec<u8>,
    width: Option<i64>,
    precision: Option<i64>,
    /// Bytes of an integer.
    bytes: usize,
    kind: u8,
}

/// Returns what a message prints; `None` if it is none.
pub(super) fn print(message: &[u64]) -> Option<Printed> {
    let mut args = Args(message);
    let control = args.word().filter(|control| *control <= 1)?;
    let format = args.string();
    let (mut text, mut at) = (Vec::new(), 0);
    while let Some(found) = format[at..].iter().position(|byte| *byte == b'%') {
        text.extend_from_slice(&format[at..at + found]);
        at += found + 1;
        if format.get(at) == Some(&b'%') {
            text.push(b'%');
            at += 1;
            continue;
        }
        // As C leaves it open what an incomplete conversion is, or one without its argument, the text ends there.
        let mut left = format[at..].iter().copied();
        let Some(conversion) = parse(&mut left, &mut args) else { return Some(finish(control, text)) };
        at = format.len() - left.len();
        if convert(&conversion, &mut args, &mut text).is_none() {
            return Some(finish(control, text));
        }
    }
    text.extend_from_slice(&format[at..]);
    Some(finish(control, text))
}

fn finish(control: u64, mut text: Vec<u8>) -> Printed {
    text.truncate(TEXT_MAX_BYTES);
    Printed { is_error: control == 1, text }
}

/// Parses a conversion behind its `%`; those of its numbers that are `*` are arguments.
fn parse(format: &mut (impl Iterator<Item = u8> + Clone), args: &mut Args<'_>) -> Option<Conversion> {
    let mut conversion = Conversion { bytes: 4, ..Conversion::default() };
    while let Some(flag) = next_if(format, |byte| b"-+ #0'".contains(&byte)) {
        if !conversion.flags.contains(&flag) {
            conversion.flags.push(flag);
        }
    }
    conversion.width = number(format, args)?;
    if conversion.width.is_some_and(|width| width < 0) {
        conversion.flags.push(b'-');
        conversion.width = conversion.width.map(i64::abs);
    }
    if next_if(format, |byte| byte == b'.').is_some() {
        // A negative precision counts as none.
        conversion.precision = Some(number(format, args)?.unwrap_or(0)).filter(|precision| *precision >= 0);
    }
    while let Some(length) = next_if(format, |byte| b"hlqjztL".contains(&byte)) {
        conversion.bytes = match (length, conversion.bytes) {
            (b'h', 2) => 1,
            (b'h', _) => 2,
            _ => 8,
        };
    }
    conversion.kind = format.next()?;
    Some(conversion)
}

/// Takes a number or `*`; `Some(None)` if there is neither, `None` if there is no argument for `*`.
fn number(format: &mut (impl Iterator<Item = u8> + Clone), args: &mut Args<'_>) -> Option<Option<i64>> {
    if next_if(format, |byte| byte == b'*').is_some() {
        return Some(Some(i64::from(args.word()? as i32).clamp(-FIELD_MAX, FIELD_MAX)));
    }
    let digits = iter::from_fn(|| next_if(format, |byte| byte.is_ascii_digit()));
    Some(digits.fold(None, |value: Option<i64>, digit| {
        Some((value.unwrap_or(0) * 10 + i64::from(digit - b'0')).min(FIELD_MAX))
    }))
}

fn next_if(format: &mut (impl Iterator<Item = u8> + Clone), is_wanted: impl Fn(u8) -> bool) -> Option<u8> {
    let next = format.clone().next().filter(|byte| is_wanted(*byte));
    if next.is_some() {
        format.next();
    }
    next
}

/// Appends what a conversion makes of its argument; `None` if there is none, or C has no such conversion.
fn convert(conversion: &Conversion, args: &mut Args<'_>, text: &mut Vec<u8>) -> Option<()> {
    // C's library measures first; text behind the limit would be cut, and is not made.
    if text.len() > TEXT_MAX_BYTES {
        return None;
    }
    match conversion.kind {
        b'd' | b'i' => {
            let unused = 64 - 8 * conversion.bytes as u32;
            let value = (args.word()? << unused) as i64 >> unused;
            format_one(conversion, "ll", Value::Signed(value), text)
        }
        b'o' | b'u' | b'x' | b'X' => {
            let unused = 64 - 8 * conversion.bytes as u32;
            format_one(conversion, "ll", Value::Unsigned(args.word()? << unused >> unused), text)
        }
        b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A' => {
            format_one(conversion, "", Value::Float(f64::from_bits(args.word()?)), text)
        }
        b'p' => format_one(conversion, "", Value::Pointer(args.word()?), text),
        // A NUL is printed as such, which a C string cannot hold.
        b'c' => {
            let byte = args.word()? as u8;
            let start = text.len();
            format_one(conversion, "", Value::Char(byte.max(1)), text)?;
            if byte == 0
                && let Some(placed) = text[start..].iter_mut().find(|placed| **placed == 1)
            {
                *placed = 0;
            }
            Some(())
        }
        b's' => {
            if args.0.is_empty() {
                return None;
            }
            format_one(conversion, "", Value::Text(args.string()), text)
        }
        // A kernel's memory is not written.
        b'n' => args.word().map(drop),
        _ => None,
    }
}

/// An argument as C's library takes it.
enum Value {
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Pointer(u64),
    Char(u8),
    Text(Vec<u8>),
}

/// Appends what C's library makes of one argument.
#[allow(unsafe_code, reason = "it calls the C library")]
fn format_one(conversion: &Conversion, length: &str, value: Value, text: &mut Vec<u8>) -> Option<()> {
    let mut format = vec![b'%'];
    format.extend_from_slice(&conversion.flags);
    format.extend(conversion.width.map(|width| width.to_string()).unwrap_or_default().bytes());
    if let Some(precision) = conversion.precision {
        format.extend(format!(".{precision}").bytes());
    }
    format.extend(length.bytes());
    format.push(conversion.kind);
    let format = CString::new(format).ok()?;
    let string = match &value {
        Value::Text(bytes) => CString::new(bytes.as_slice()).ok()?,
        _ => CString::default(),
    };
    let write = |at: *mut c_char, len_bytes: usize| {
        let format = format.as_ptr();
        // SAFETY: `at` has `len_bytes` bytes, or is null with none; the format has exactly one conversion, whose flags, numbers and length are
        // valid, and which takes an argument of the type that is passed; strings end with a NUL and outlive the call.
        unsafe {
            match value {
                Value::Signed(value) => libc::snprintf(at, len_bytes, format, value),
                Value::Unsigned(value) => libc::snprintf(at, len_bytes, format, value),
                Value::Float(value) => libc::snprintf(at, len_bytes, format, value),
                Value::Pointer(value) => libc::snprintf(at, len_bytes, format, value as *const libc::c_void),
                Value::Char(value) => libc::snprintf(at, len_bytes, format, c_int::from(value)),
                Value::Text(_) => libc::snprintf(at, len_bytes, format, string.as_ptr()),
            }
        }
    };
    let len_bytes = usize::try_from(write(std::ptr::null_mut(), 0)).ok()?;
    let start = text.len();
    text.resize(start + len_bytes + 1, 0);
    write(text[start..].as_mut_ptr().cast(), len_bytes + 1);
    text.truncate(start + len_bytes);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    enum Arg<'a> {
        Word(u64),
        Float(f64),
        Text(&'a str),
    }

    fn words(text: &str) -> Vec<u64> {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize((bytes.len() / 8 + 1) * 8, 0);
        bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
    }

    fn message(control: u64, format: &str, args: &[Arg<'_>]) -> Vec<u64> {
        let mut message = vec![control];
        message.extend(words(format));
        for arg in args {
            match arg {
                Arg::Word(word) => message.push(*word),
                Arg::Float(value) => message.push(value.to_bits()),
                Arg::Text(text) => message.extend(words(text)),
            }
        }
        message
    }

    fn printed(format: &str, args: &[Arg<'_>]) -> String {
        let printed = print(&message(0, format, args)).expect("a message");
        String::from_utf8(printed.text).expect("UTF-8")
    }

    #[test]
    fn conversions_are_those_of_c() {
        use Arg::{Float, Text, Word};
        let minus = |value: i64| Word(value as u64);
        let cases: &[(&str, &[Arg<'_>], &str)] = &[
            ("plain 100%%\n", &[], "plain 100%\n"),
            (
                "%d|%5d|%-5d|%05d|%+d|% d",
                &[minus(-7), Word(42), Word(42), Word(42), Word(42), Word(42)],
                "-7|   42|42   |00042|+42| 42",
            ),
            (
                "%hhd %hd %d %ld %lld",
                &[Word(0x1ff), Word(0x1_8000), Word(0x1_8000_0000), minus(i64::MIN), minus(-1)],
                "-1 -32768 -2147483648 -9223372036854775808 -1",
            ),
            (
                "%u %x %#X %o %lx %zu",
                &[Word(u64::MAX), Word(255), Word(255), Word(8), Word(u64::MAX), Word(7)],
                "4294967295 ff 0XFF 10 ffffffffffffffff 7",
            ),
            (
                "%f %.2f %e %g %G %a",
                &[Float(1.5), Float(-0.125), Float(12345.678), Float(1e-7), Float(1e20), Float(1.0)],
                "1.500000 -0.12 1.234568e+04 1e-07 1E+20 0x1p+0",
            ),
            ("%f %F %5.1f|", &[Float(f64::INFINITY), Float(f64::NAN), Float(2.25)], "inf NAN   2.2|"),
            (
                "%s and %s|%8s|%-8s|%.2s",
                &[Text("one"), Text("12345678"), Text("r"), Text("l"), Text("cut")],
                "one and 12345678|       r|l       |cu",
            ),
            ("%c%3c%-3c|", &[Word(97), Word(98), Word(99)], "a  bc  |"),
            ("%p %p", &[Word(0x1234), Word(0)], "0x1234 (nil)"),
            (
                "%*d|%-*d|%.*f|%*.*f",
                &[Word(4), Word(7), Word(4), Word(7), Word(1), Float(0.25), Word(8), Word(3), Float(0.5)],
                "   7|7   |0.2|   0.500",
            ),
            ("%*d|%.*f", &[minus(-4), Word(7), minus(-1), Float(0.25)], "7   |0.250000"),
            ("a%nb%d", &[Word(1), Word(2)], "ab2"),
            ("%d %d", &[Word(1)], "1 "),
            ("%d %y %d", &[Word(1), Word(2), Word(3)], "1 "),
            ("%", &[], ""),
            ("%5", &[Word(1)], ""),
        ];
        for (format, args, expected) in cases {
            assert_eq!(printed(format, args), *expected, "{format}");
        }
    }

    #[test]
    fn a_nul_is_printed_and_errors_have_their_stream() {
        assert_eq!(print(&message(0, "a%cb", &[Arg::Word(0)])).expect("a message").text, b"a\0b");
        let printed = print(&message(1, "x", &[])).expect("a message");
        assert_eq!(printed, Printed { is_error: true, text: b"x".to_vec() });
        assert_eq!(print(&message(2, "x", &[])), None, "no such stream");
        assert_eq!(print(&[]), None);
    }

    #[test]
    fn texts_have_bounds() {
        let wide = printed("%999999999d|%.999999999f", &[Arg::Word(1), Arg::Float(1.0)]);
        assert!(wide.len() < 3 * FIELD_MAX as usize, "{}", wide.len());
        let many = "%16000d".repeat(200);
        let args: Vec<_> = (0..200).map(Arg::Word).collect();
        assert!(printed(&many, &args).len() <= TEXT_MAX_BYTES);
        // A format without its NUL.
        assert_eq!(print(&[0, u64::from_le_bytes(*b"abcdefgh")]).expect("a message").text, b"abcdefgh");
    }
}
