//! Selects the code object for a device from an image of any format.

use std::borrow::Cow;
use std::ops::Range;

use thiserror::Error;

use crate::error::ImageError;
use crate::image::{Format, check_elf};
use crate::{Bundle, BundleEntry, Fit, Limits, Target, bytes, compressed, machine};

/// Why an image has no code object for a device.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SelectError {
    /// The image is invalid.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The image contains code for other devices only.
    #[error("no code object for {device}; the image has code for: {}", list(available))]
    NoMatch {
        /// The target of the device.
        device: Target,
        /// The targets of the code objects in the image, as written there.
        available: Vec<String>,
    },
}

fn list(available: &[String]) -> String {
    if available.is_empty() { "nothing".to_owned() } else { available.join(", ") }
}

/// Selects a code object like [`select_with`], with the default [`Limits`].
pub fn select<'a>(image: &'a [u8], device: &Target) -> Result<Cow<'a, [u8]>, SelectError> {
    select_with(image, device, Limits::default())
}

/// Returns the ELF code object for `device` from a bare ELF file, an offload bundle or a compressed bundle.
///
/// Code for exactly the device's processor is preferred to generic code, and among equals the one that was compiled
/// for more of the device's settings, then the first. Bytes behind the image do no harm.
pub fn select_with<'a>(
    image: &'a [u8],
    device: &Target,
    limits: Limits,
) -> Result<Cow<'a, [u8]>, SelectError> {
    match Format::sniff(image) {
        Some(Format::Elf) => select_elf(image, device).map(Cow::Borrowed),
        Some(Format::Bundle) => {
            // select_entry checked the range.
            Ok(Cow::Borrowed(image.get(select_entry(image, device)?).unwrap_or_default()))
        }
        Some(Format::CompressedBundle) => {
            let mut bundle = compressed::decompress(image, limits)?;
            if Format::sniff(&bundle) != Some(Format::Bundle) {
                return Err(ImageError::Malformed(
                    "a compressed bundle that does not contain an offload bundle",
                )
                .into());
            }
            // The code object stays where it was unpacked, as there may be no room for a second copy.
            let code = select_entry(&bundle, device)?;
            bundle.truncate(code.end);
            bundle.drain(..code.start);
            Ok(Cow::Owned(bundle))
        }
        None => Err(ImageError::UnknownFormat.into()),
    }
}

fn select_elf<'a>(elf: &'a [u8], device: &Target) -> Result<&'a [u8], SelectError> {
    check_elf(elf)?;
    let truncated = ImageError::Truncated { needed: 64, len: elf.len() as u64 };
    let flags = bytes::u32_at(elf, 48).ok_or(truncated)?;
    let target = machine::target_of_flags(flags);
    if target.as_ref().is_some_and(|target| target.runs_on(device).is_some()) {
        return Ok(elf);
    }
    let name =
        target.map_or_else(|| format!("processor number {:#x}", flags & 0xff), |target| target.to_string());
    Err(SelectError::NoMatch { device: device.clone(), available: vec![name] })
}

/// Returns the target of an entry for HIP; `None` for other entries, such as OpenMP's.
fn hip_target(id: &str) -> Option<Target> {
    if id.starts_with("hip") { Target::of_entry(id).ok() } else { None }
}

/// Returns where in a bundle the code object for a device is.
fn select_entry(image: &[u8], device: &Target) -> Result<Range<usize>, SelectError> {
    let bundle = Bundle::parse(image)?;
    let mut best: Option<(Fit, &BundleEntry)> = None;
    let mut available = Vec::new();
    for entry in bundle.entries() {
        // Bundle::parse checked the range.
        let code = image.get(entry.range.clone()).unwrap_or_default();
        if code.is_empty() {
            continue;
        }
        let Some(fit) = hip_target(&entry.id).and_then(|target| target.runs_on(device)) else {
            available.push(entry.id.clone());
            continue;
        };
        if best.is_none_or(|(other, _)| fit > other) {
            best = Some((fit, entry));
        }
    }
    let (_, entry) = best.ok_or(SelectError::NoMatch { device: device.clone(), available })?;
    let code = image.get(entry.range.clone()).unwrap_or_default();
    match Format::sniff(code) {
        Some(Format::Elf) => check_elf(code)?,
        _ => return Err(ImageError::Malformed("a bundle entry that is not an ELF file").into()),
    }
    Ok(entry.range.clone())
}
