//! Numbers of bytes as people write them.

use std::fmt;
use std::str::FromStr;

/// A number of bytes: `4096`, `64K`, `4M`, `16G`, `1T`; the letters are powers of 1024.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub struct Size(pub u64);

/// Minimum of what all sessions together, or all of a tenant, may have: some of them have to find room for a kernel.
const TOTAL_MIN: Size = Size(128 << 20);

impl Size {
    /// Reads how much memory several sessions may have together.
    ///
    /// # Errors
    /// It is no size, or less than they need.
    pub fn of_total(text: &str) -> Result<Self, String> {
        let size: Self = text.parse()?;
        if size < TOTAL_MIN { Err(format!("it must be at least {TOTAL_MIN}")) } else { Ok(size) }
    }
}

/// The units and the powers of two that they stand for.
const UNITS: [(char, u32); 4] = [('T', 40), ('G', 30), ('M', 20), ('K', 10)];

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unit = UNITS.iter().find(|(letter, _)| text.ends_with([*letter, letter.to_ascii_lowercase()]));
        let (digits, shift) =
            unit.map_or((text, 0), |&(_, shift)| (text.get(..text.len() - 1).unwrap_or_default(), shift));
        let all_digits = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        if !all_digits {
            return Err("expected a number, optionally followed by K, M, G or T (powers of 1024)".into());
        }
        let number: Option<u64> = digits.parse().ok();
        let bytes =
            number.and_then(|number| number.checked_mul(1 << shift)).ok_or("the size is too large")?;
        Ok(Self(bytes))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS.iter().find(|(_, shift)| self.0 > 0 && self.0.trailing_zeros() >= *shift) {
            Some((letter, shift)) => write!(f, "{}{letter}", self.0 >> shift),
            None => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_letters_for_powers_of_1024() {
        let size = |text: &str| text.parse::<Size>().map(|size| size.0);
        assert_eq!(size("0"), Ok(0));
        assert_eq!(size("4097"), Ok(4097));
        assert_eq!(size("64K"), Ok(64 << 10));
        assert_eq!(size("4m"), Ok(4 << 20));
        assert_eq!(size("16G"), Ok(16 << 30));
        assert_eq!(size("2T"), Ok(2 << 40));
        for wrong in
            ["", "K", "-1", "+1", "1.5G", "4 M", "4MiB", "0x10", "16777216T", "18446744073709551616", "4µ"]
        {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_size_is_printed_as_it_is_read() {
        for (bytes, text) in
            [(0, "0"), (1, "1"), (1000, "1000"), (64 << 10, "64K"), (3 << 29, "1536M"), (1 << 40, "1T")]
        {
            assert_eq!(Size(bytes).to_string(), text);
            assert_eq!(text.parse(), Ok(Size(bytes)));
        }
    }
}
