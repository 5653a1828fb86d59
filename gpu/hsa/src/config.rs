//! What the environment says of the emulated GPUs.

use std::num::NonZero;

use hipr_isa::Arch;

/// How many GPUs there are, which, and with what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    /// The GPUs' instruction sets, one for each.
    pub(crate) devices: Vec<Arch>,
    /// Memory of each GPU in bytes; by default three quarters of the host's, at most the real one's.
    pub(crate) memory_bytes: Option<u64>,
    /// Threads that execute kernels; by default one for each of the host's processors.
    pub(crate) threads: Option<NonZero<usize>>,
}

/// Most GPUs that there can be.
const DEVICES_MAX: usize = 16;

impl Config {
    /// Reads `HIPR_SIM_DEVICES`, `HIPR_SIM_MEMORY` and `HIPR_SIM_THREADS`.
    ///
    /// # Errors
    /// A sentence about the first that cannot be read.
    pub(crate) fn from_env() -> Result<Self, String> {
        let variable = |name| std::env::var(name).ok().filter(|text| !text.trim().is_empty());
        let devices =
            variable("HIPR_SIM_DEVICES").map_or(Ok(vec![Arch::default()]), |text| devices(&text))?;
        let memory_bytes = variable("HIPR_SIM_MEMORY").map(|text| bytes(&text)).transpose()?;
        let threads = variable("HIPR_SIM_THREADS").map(|text| threads(&text)).transpose()?;
        Ok(Self { devices, memory_bytes, threads })
    }
}

/// Reads a list such as `2,gfx942` (two of them), `gfx942,gfx90a` (one of each) or `3` (of the default).
fn devices(text: &str) -> Result<Vec<Arch>, String> {
    let wrong = |why: String| format!("HIPR_SIM_DEVICES={text}: {why}; write for example 2,gfx942");
    let (mut devices, mut count) = (Vec::new(), None);
    for word in text.split(',').map(str::trim) {
        if let Ok(number) = word.parse::<usize>() {
            if let Some(count) = count.replace(number) {
                devices.extend(std::iter::repeat_n(Arch::default(), count));
            }
        } else {
            let arch: Arch = word.parse().map_err(|_| wrong(format!("{word} is no GPU that is emulated")))?;
            devices.extend(std::iter::repeat_n(arch, count.take().unwrap_or(1)));
        }
        if devices.len() > DEVICES_MAX || count.is_some_and(|count| count > DEVICES_MAX) {
            return Err(wrong(format!("there are at most {DEVICES_MAX} devices")));
        }
    }
    devices.extend(std::iter::repeat_n(Arch::default(), count.unwrap_or(0)));
    if devices.is_empty() || devices.len() > DEVICES_MAX {
        return Err(wrong(format!("there are 1 to {DEVICES_MAX} devices")));
    }
    Ok(devices)
}

/// Reads a number of bytes, with `K`, `M`, `G` or `T` for powers of 1,024.
fn bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let shift = match text.bytes().last().map(|unit| unit.to_ascii_uppercase()) {
        Some(b'K') => 10,
        Some(b'M') => 20,
        Some(b'G') => 30,
        Some(b'T') => 40,
        _ => 0,
    };
    let digits = if shift == 0 { text } else { &text[..text.len() - 1] };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    number
        .filter(|&bytes| bytes >= 1 << 20)
        .ok_or_else(|| format!("HIPR_SIM_MEMORY={text} is no size of at least 1M; write for example 16G"))
}

fn threads(text: &str) -> Result<NonZero<usize>, String> {
    text.trim().parse().map_err(|_| format!("HIPR_SIM_THREADS={text} is no number from 1 on"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_counted_and_named() {
        use Arch::{Gfx90a, Gfx942};
        for (text, expected) in [
            ("1", vec![Gfx942]),
            ("2", vec![Gfx942; 2]),
            ("2,gfx942", vec![Gfx942; 2]),
            ("gfx90a", vec![Gfx90a]),
            ("gfx942,gfx90a", vec![Gfx942, Gfx90a]),
            ("2, gfx90a, 1, gfx942", vec![Gfx90a, Gfx90a, Gfx942]),
            ("1,2", vec![Gfx942; 3]),
        ] {
            assert_eq!(devices(text).as_deref(), Ok(expected.as_slice()), "{text}");
        }
        for text in ["0", "", "gfx1100", "17", "9,9", "99999999999999999999", "-1", "2,,gfx942"] {
            assert!(devices(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes("16G"), Ok(16 << 30));
        assert_eq!(bytes(" 2048k "), Ok(2 << 20));
        assert_eq!(bytes("1048576"), Ok(1 << 20));
        for text in ["", "G", "1", "12X", "-1G", "99999999999T"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
