//! Base64 as keys, fingerprints and tokens are written: the alphabet of URLs, without padding; and as PEM files have it.

/// The 64 digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alphabet {
    /// With `-` and `_`, without padding.
    Url,
    /// With `+` and `/`, padded.
    Pem,
}

const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

impl Alphabet {
    fn digit(self, value: u32) -> char {
        let rest = match self {
            Self::Url => ['-', '_'],
            Self::Pem => ['+', '/'],
        };
        let value = (value & 63) as usize;
        LETTERS.get(value).map_or(if value == 62 { rest[0] } else { rest[1] }, |&letter| letter.into())
    }

    fn value(self, digit: u8) -> Option<u32> {
        let value = match (digit, self) {
            (b'A'..=b'Z', _) => digit - b'A',
            (b'a'..=b'z', _) => digit - b'a' + 26,
            (b'0'..=b'9', _) => digit - b'0' + 52,
            (b'-', Self::Url) | (b'+', Self::Pem) => 62,
            (b'_', Self::Url) | (b'/', Self::Pem) => 63,
            _ => return None,
        };
        Some(value.into())
    }
}

pub(crate) fn encode(alphabet: Alphabet, bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - group.len()));
        text.extend((0..=group.len()).map(|digit| alphabet.digit(bits >> (18 - 6 * digit))));
        if alphabet == Alphabet::Pem {
            text.extend((group.len()..3).map(|_| '='));
        }
    }
    text
}

/// Returns the bytes that `text` stands for; `None` for what [`encode`] does not write.
pub(crate) fn decode(alphabet: Alphabet, text: &str) -> Option<Vec<u8>> {
    let digits = match alphabet {
        Alphabet::Url => text,
        Alphabet::Pem if text.len().is_multiple_of(4) => {
            let one = text.strip_suffix('=').unwrap_or(text);
            one.strip_suffix('=').unwrap_or(one)
        }
        Alphabet::Pem => return None,
    };
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for group in digits.as_bytes().chunks(4) {
        let mut bits = 0;
        for &digit in group {
            bits = bits << 6 | alphabet.value(digit)?;
        }
        let spare = match group.len() {
            4 => 0,
            3 => 2,
            2 => 4,
            _ => return None,
        };
        // One text for each value: the spare bits are zero.
        if bits & ((1 << spare) - 1) != 0 {
            return None;
        }
        let whole = (bits >> spare).to_be_bytes();
        bytes.extend_from_slice(whole.get(5 - group.len()..)?);
    }
    Some(bytes)
}

/// Returns the 32 bytes that `text` stands for.
pub(crate) fn decode_32(text: &str) -> Option<[u8; 32]> {
    // 32 bytes have 43 digits; a longer text is not decoded at all.
    (text.len() == 43).then(|| decode(Alphabet::Url, text)).flatten()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for (bytes, url, pem) in [
            (&b""[..], "", ""),
            (b"f", "Zg", "Zg=="),
            (b"fo", "Zm8", "Zm8="),
            (b"foo", "Zm9v", "Zm9v"),
            (b"foobar", "Zm9vYmFy", "Zm9vYmFy"),
            (&[0xfb, 0xff, 0xfe], "-__-", "+//+"),
        ] {
            assert_eq!(encode(Alphabet::Url, bytes), url);
            assert_eq!(encode(Alphabet::Pem, bytes), pem);
            assert_eq!(decode(Alphabet::Url, url).as_deref(), Some(bytes));
            assert_eq!(decode(Alphabet::Pem, pem).as_deref(), Some(bytes));
        }
        let all: Vec<u8> = (0..=255).collect();
        for len in 0..=all.len() {
            for alphabet in [Alphabet::Url, Alphabet::Pem] {
                let text = encode(alphabet, &all[..len]);
                assert_eq!(decode(alphabet, &text).as_deref(), Some(&all[..len]), "{text}");
            }
        }
    }

    #[test]
    fn one_value_has_one_text() {
        for wrong in ["Z", "Zh", "Zm9", "Zg==", "Zm 9", "Zm9v=", "Zg\n", "+//+", "Zm9\u{e9}"] {
            assert_eq!(decode(Alphabet::Url, wrong), None, "{wrong}");
        }
        for wrong in ["Zg", "Zg=", "Zh==", "Z===", "====", "-__-"] {
            assert_eq!(decode(Alphabet::Pem, wrong), None, "{wrong}");
        }
    }
}
