//! Times and numbers of bytes as people read them.

use std::fmt;

/// A time as people read it.
pub(crate) struct Time(pub(crate) u64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        let text = match self.0 {
            0..1_000 => format!("{ns:.0} ns"),
            1_000..1_000_000 => format!("{:.1} µs", ns / 1e3),
            1_000_000..1_000_000_000 => format!("{:.1} ms", ns / 1e6),
            _ => format!("{:.2} s", ns / 1e9),
        };
        f.pad(&text)
    }
}

/// A number of bytes, shown with a unit.
pub(crate) struct Bytes(pub(crate) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as f64;
        match self.0 {
            0..10_000 => write!(f, "{} bytes", self.0),
            10_000..1_000_000 => write!(f, "{:.1} kB", bytes / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.1} MB", bytes / 1e6),
            _ => write!(f, "{:.2} GB", bytes / 1e9),
        }
    }
}
