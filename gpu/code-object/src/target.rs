//! Targets, the names of GPUs, such as `gfx942:sramecc+:xnack-`, and which code runs on which.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A processor with its feature settings, as written in bundle entries, in metadata and in a device's
/// `gcnArchName`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// `gfx942`, `gfx1100`, or a generic one such as `gfx9-4-generic`.
    pub processor: String,
    /// Error correction of the memory. `None`: code runs with either setting, or the device has no such setting.
    pub sramecc: Option<bool>,
    /// Page-fault replay. `None`: code runs with either setting, or the device has no such setting.
    pub xnack: Option<bool>,
}

/// How well a code object suits a device; greater is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// Code for a family of processors that the device belongs to.
    Generic {
        /// Number of feature settings that the code was compiled for.
        settings: u8,
    },
    /// Code for exactly this processor.
    Exact {
        /// Number of feature settings that the code was compiled for.
        settings: u8,
    },
}

/// Why a text is not a target.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TargetError {
    /// The text contains no `gfx…` processor.
    #[error("{0:?} names no AMD processor")]
    NoProcessor(String),
    /// A `:feature` is not `sramecc` or `xnack` with `+` or `-`, or occurs twice.
    #[error("{0:?} is not a feature setting (sramecc+, sramecc-, xnack+, xnack-)")]
    Feature(String),
}

/// Generic processors and the processors that run their code (LLVM's AMDGPU usage guide, "Generic processors").
#[rustfmt::skip]
const GENERIC: &[(&str, &[&str])] = &[
    ("gfx9-generic", &["gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"]),
    ("gfx9-4-generic", &["gfx940", "gfx941", "gfx942", "gfx950"]),
    ("gfx10-1-generic", &["gfx1010", "gfx1011", "gfx1012", "gfx1013"]),
    ("gfx10-3-generic", &["gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"]),
    ("gfx11-generic", &["gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"]),
    ("gfx12-generic", &["gfx1200", "gfx1201"]),
];

impl Target {
    /// Returns how well code for `self` suits `device`, or `None` if it does not run there. It runs if it was compiled for
    /// the device's processor or a generic one, and every feature setting it was compiled for is the device's.
    pub fn runs_on(&self, device: &Target) -> Option<Fit> {
        let mut settings = 0;
        for (code, device) in [(self.sramecc, device.sramecc), (self.xnack, device.xnack)] {
            if code.is_some() {
                if code != device {
                    return None;
                }
                settings += 1;
            }
        }
        if self.processor == device.processor {
            return Some(Fit::Exact { settings });
        }
        let (_, members) = GENERIC.iter().find(|(name, _)| *name == self.processor)?;
        members.contains(&device.processor.as_str()).then_some(Fit::Generic { settings })
    }

    /// Returns whether this is a generic processor, which stands for a family.
    pub fn is_generic(&self) -> bool {
        self.processor.ends_with("-generic")
    }

    /// Parses the id of a bundle entry, `KIND-TRIPLE-PROCESSOR[:FEATURES]` such as
    /// `hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-`.
    pub fn of_entry(id: &str) -> Result<Target, TargetError> {
        let (_kind, target) = id.split_once('-').ok_or_else(|| TargetError::NoProcessor(id.to_owned()))?;
        target.parse()
    }
}

/// Parses a processor with features (`gfx90a:sramecc+:xnack-`), alone or after a triple with or without environment
/// (`amdgcn-amd-amdhsa--gfx942`, `amdgpu9.42-amd-amdhsa-unknown-gfx942`).
impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Target, TargetError> {
        let none = || TargetError::NoProcessor(text.to_owned());
        let name = if text.starts_with("amdgcn-") || text.starts_with("amdgpu") {
            let at = text.find("-gfx").ok_or_else(none)?;
            text.get(at + 1..).ok_or_else(none)?
        } else {
            text
        };
        let mut parts = name.split(':');
        let processor = parts.next().unwrap_or_default();
        let number = processor.strip_prefix("gfx").ok_or_else(none)?;
        let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !number.starts_with(|c: char| c.is_ascii_digit()) || !number.chars().all(valid) {
            return Err(none());
        }
        let mut target = Target { processor: processor.to_owned(), sramecc: None, xnack: None };
        for feature in parts {
            let wrong = || TargetError::Feature(feature.to_owned());
            let (name, on) = match (feature.strip_suffix('+'), feature.strip_suffix('-')) {
                (Some(name), _) => (name, true),
                (_, Some(name)) => (name, false),
                _ => return Err(wrong()),
            };
            let setting = match name {
                "sramecc" => &mut target.sramecc,
                "xnack" => &mut target.xnack,
                _ => return Err(wrong()),
            };
            if setting.replace(on).is_some() {
                return Err(wrong());
            }
        }
        Ok(target)
    }
}

/// Writes the short form with the features in alphabetical order: `gfx942:sramecc+:xnack-`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.processor)?;
        for (name, setting) in [("sramecc", self.sramecc), ("xnack", self.xnack)] {
            if let Some(on) = setting {
                write!(f, ":{name}{}", if on { '+' } else { '-' })?;
            }
        }
        Ok(())
    }
}
