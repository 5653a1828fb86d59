//! The code object for a device, out of whatever file there is.

use std::borrow::Cow;

use thiserror::Error;

use crate::image::{Format, ImageError, check_elf};
use crate::{Bundle, Fit, Limits, Target, bytes, compressed, machine};

/// Why there is no code object for the device.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SelectError {
    /// The file itself is not in order.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The file is in order and holds code for other devices only.
    #[error("no code object for {device}; there is code for: {}", list(available))]
    NoMatch {
        /// What was looked for.
        device: Target,
        /// The targets of the code objects in the file, as written there.
        available: Vec<String>,
    },
}

fn list(available: &[String]) -> String {
    if available.is_empty() { "nothing".to_owned() } else { available.join(", ") }
}

/// [`select_with`] the default [`Limits`].
pub fn select<'a>(image: &'a [u8], device: &Target) -> Result<Cow<'a, [u8]>, SelectError> {
    select_with(image, device, Limits::default())
}

/// The ELF code object for `device` in a bare ELF file, an offload bundle or a compressed bundle.
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
        Some(Format::Bundle) => select_entry(image, device).map(Cow::Borrowed),
        Some(Format::CompressedBundle) => {
            let bundle = compressed::decompress(image, limits)?;
            if Format::sniff(&bundle) != Some(Format::Bundle) {
                return Err(ImageError::Malformed("a compressed bundle that holds no bundle").into());
            }
            Ok(Cow::Owned(select_entry(&bundle, device)?.to_vec()))
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

/// The target of a HIP entry; bundles may hold OpenMP's code as well, which is no use to HIP.
fn hip_target(id: &str) -> Option<Target> {
    if id.starts_with("hip") { Target::of_entry(id).ok() } else { None }
}

fn select_entry<'a>(image: &'a [u8], device: &Target) -> Result<&'a [u8], SelectError> {
    let bundle = Bundle::parse(image)?;
    let mut best: Option<(Fit, &[u8])> = None;
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
            best = Some((fit, code));
        }
    }
    let (_, code) = best.ok_or(SelectError::NoMatch { device: device.clone(), available })?;
    match Format::sniff(code) {
        Some(Format::Elf) => check_elf(code)?,
        _ => return Err(ImageError::Malformed("a bundle entry that is no ELF file").into()),
    }
    Ok(code)
}
