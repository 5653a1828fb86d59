//! Text from outside, made harmless for a terminal and for who reads a log line by line.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns whether a character is written as its number: it could end the line, control a terminal, or show the text in another order or
/// not at all.
fn is_escaped(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Soft hyphen, Arabic letter mark, invisible and directional marks, line and paragraph separators, directional embeddings.
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            // Invisible operators, directional isolates, shaping controls; byte order mark; annotations; tags; variation selectors.
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns a text with its control characters, escape codes and marks of direction replaced by `\n`, `\u{1b}` and the like, cut after
/// about `max_bytes`.
pub fn escaped(text: &str, max_bytes: usize) -> Cow<'_, str> {
    if text.len() <= max_bytes && !text.chars().any(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    for (at, c) in text.char_indices() {
        if out.len() >= max_bytes {
            let left = text.len() - at;
            // A string takes everything.
            let _ = write!(out, "… ({left} more bytes)");
            break;
        }
        if is_escaped(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmless_text_stays() {
        for text in ["", "saxpy(float*, int)", "größer, 大きい, 👍", "a\\n", "tab\u{301}"] {
            assert!(matches!(escaped(text, 100), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    #[test]
    fn what_ends_lines_or_controls_terminals_is_written_as_numbers() {
        assert_eq!(escaped("a\nb\r\tc\0", 100), "a\\nb\\r\\tc\\u{0}");
        assert_eq!(escaped("\x1b[2J\x7f\u{9b}31m", 100), "\\u{1b}[2J\\u{7f}\\u{9b}31m");
        assert_eq!(
            escaped("x\u{202e}evil\u{2069}\u{2028}\u{feff}\u{e0041}", 100),
            "x\\u{202e}evil\\u{2069}\\u{2028}\\u{feff}\\u{e0041}"
        );
        for number in 0..0x11_0000 {
            let Some(c) = char::from_u32(number) else { continue };
            let out = escaped(c.encode_utf8(&mut [0; 4]), 100).into_owned();
            assert!(!out.chars().any(is_escaped), "{number:#x}: {out:?}");
        }
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!(escaped("ääää", 5), "äää… (2 more bytes)");
        assert_eq!(escaped("abc", 3), "abc");
        let long = escaped(&"\n".repeat(100_000), 4096).into_owned();
        assert!(long.len() < 4096 + 100 && long.ends_with(" more bytes)"), "{}", long.len());
    }
}
