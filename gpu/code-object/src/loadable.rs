//! Decides whether a device can load an image: the same rule for the client, which refuses at once, and the emulated GPU.

use std::borrow::Cow;

use hipr_abi::{hipErrorInvalidImage, hipErrorNoBinaryForGpu, hipErrorSharedObjectSymbolNotFound};
use thiserror::Error;

use crate::error::MetadataError;
use crate::{
    CodeObject, Kernel, LoadError, ParseError, Relocation, RelocationTarget, SelectError, Target, select,
};

/// An image's code object for a device, which can be loaded at any address.
#[derive(Debug)]
pub struct Loadable<'a> {
    /// The bytes of the ELF file.
    pub elf: Cow<'a, [u8]>,
    /// The parsed file.
    pub code: CodeObject,
}

/// Why a device cannot load an image.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unloadable {
    /// There is no code object for the device.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// The code object cannot be parsed.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The code object cannot be relocated.
    #[error(transparent)]
    Load(#[from] LoadError),
}

impl Unloadable {
    /// Returns the `hipError_t` with which hipModuleLoadData refuses the image: `hipErrorNoBinaryForGpu` if it has code for other devices
    /// only, `hipErrorSharedObjectSymbolNotFound` for an undefined symbol, else `hipErrorInvalidImage`.
    pub fn hip_error(&self) -> i32 {
        match self {
            Self::Select(SelectError::NoMatch { .. }) => hipErrorNoBinaryForGpu,
            Self::Load(LoadError::Undefined(_)) => hipErrorSharedObjectSymbolNotFound,
            Self::Select(SelectError::Image(_)) | Self::Parse(_) | Self::Load(_) => hipErrorInvalidImage,
        }
    }

    /// Returns whether another loader may judge differently, so that a client has to ask: the code object is of a version or kind that
    /// this parser does not know, or refers to what a GPU's runtime may provide.
    pub fn is_matter_of_loader(&self) -> bool {
        match self {
            Self::Parse(why) => matches!(
                why,
                ParseError::AbiVersion(_)
                    | ParseError::OsAbi(_)
                    | ParseError::Processor(_)
                    | ParseError::Relocation(_)
                    | ParseError::Metadata(MetadataError::Version { .. })
            ),
            Self::Select(_) => false,
            Self::Load(_) => true,
        }
    }
}

/// Returns the code object in `image` (ELF, bundle or compressed bundle) that `device` loads.
///
/// # Errors
/// Why the device cannot load the image.
pub fn loadable<'a>(image: &'a [u8], device: &Target) -> Result<Loadable<'a>, Unloadable> {
    let elf = select(image, device)?;
    let code = CodeObject::parse(&elf)?;
    code.check_relocations()?;
    Ok(Loadable { elf, code })
}

impl CodeObject {
    /// Iterates over the relocations that have to be applied. Objects of assembler kernels carry a symbol named `UNDEF` that nothing
    /// uses; those of it are left out.
    pub fn applied_relocations(&self) -> impl Iterator<Item = &Relocation> {
        let is_unused = |target: &RelocationTarget| matches!(target, RelocationTarget::Undefined(name) if name == "UNDEF");
        self.relocations().iter().filter(move |relocation| !is_unused(&relocation.target))
    }

    /// Checks that every relocation has a value and lies within the loaded memory, wherever that is.
    fn check_relocations(&self) -> Result<(), LoadError> {
        for relocation in self.applied_relocations() {
            let (_, len) = relocation.bytes(0)?;
            let end = relocation.vaddr.checked_add(len as u64);
            if end.is_none_or(|end| end > self.image_bytes()) {
                return Err(LoadError::Place(relocation.vaddr));
            }
        }
        Ok(())
    }

    /// Returns the kernel with this name if it can be launched: its entry point lies in an executable segment.
    pub fn launchable(&self, name: &str) -> Option<&Kernel> {
        self.kernel(name).filter(|kernel| self.is_launchable(kernel))
    }

    /// Iterates over the kernels that can be launched, sorted by name.
    pub fn launchable_kernels(&self) -> impl Iterator<Item = &Kernel> {
        self.kernels().iter().filter(|kernel| self.is_launchable(kernel))
    }

    fn is_launchable(&self, kernel: &Kernel) -> bool {
        self.segments().iter().filter(|segment| segment.executable).any(|segment| {
            // Code consists of whole words.
            let code_bytes = segment.file.len() as u64 & !3;
            kernel.entry_vaddr.wrapping_sub(segment.vaddr) < code_bytes
        })
    }
}
