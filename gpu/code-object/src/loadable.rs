//! Decides whether a device can load an image: the same rule for the client, which refuses at once, and the emulated GPU.

use std::borrow::Cow;

use hipr_abi::{
    hipErrorInvalidImage, hipErrorNoBinaryForGpu, hipErrorOutOfMemory, hipErrorSharedObjectSymbolNotFound,
};
use thiserror::Error;

use crate::cost::DECODED_BYTES_PER_WORD;
use crate::error::{ImageError, MetadataError};
use crate::{
    CodeObject, Kernel, Limits, LoadError, ParseError, Relocation, RelocationTarget, SelectError, Target,
    select_with,
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
    /// The image needs more memory than the caller grants.
    #[error("the code object needs more than the {0} bytes of memory that are left")]
    Room(u64),
}

impl Unloadable {
    /// Returns the `hipError_t` with which hipModuleLoadData refuses the image: `hipErrorNoBinaryForGpu` if it has code for other devices
    /// only, `hipErrorSharedObjectSymbolNotFound` for an undefined symbol, `hipErrorOutOfMemory` if it needs more memory than there is,
    /// else `hipErrorInvalidImage`.
    pub fn hip_error(&self) -> i32 {
        match self {
            Self::Select(SelectError::NoMatch { .. }) => hipErrorNoBinaryForGpu,
            Self::Load(LoadError::Undefined(_)) => hipErrorSharedObjectSymbolNotFound,
            Self::Room(_) => hipErrorOutOfMemory,
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
            Self::Select(_) | Self::Room(_) => false,
            Self::Load(_) => true,
        }
    }
}

/// Returns the code object in `image` (ELF, bundle or compressed bundle) that `device` loads.
///
/// # Errors
/// Why the device cannot load the image.
pub fn loadable<'a>(image: &'a [u8], device: &Target) -> Result<Loadable<'a>, Unloadable> {
    loadable_within(image, device, u64::MAX)
}

/// Returns the code object like [`loadable`], if the unpacked bundle together with what an emulator makes of the code object
/// ([`CodeObject::cost_bytes`]) needs at most `room_bytes` of memory. The memory is not exceeded meanwhile either.
///
/// # Errors
/// [`Unloadable::Room`]; why the device cannot load the image.
pub fn loadable_within<'a>(
    image: &'a [u8],
    device: &Target,
    room_bytes: u64,
) -> Result<Loadable<'a>, Unloadable> {
    let no_room = Unloadable::Room(room_bytes);
    let limits = Limits { uncompressed_max_bytes: Limits::default().uncompressed_max_bytes.min(room_bytes) };
    let elf = select_with(image, device, limits).map_err(|why| match why {
        SelectError::Image(ImageError::TooLong { limit, .. }) if limit == room_bytes => no_room.clone(),
        why => why.into(),
    })?;
    let unpacked_bytes = match &elf {
        Cow::Borrowed(_) => 0,
        Cow::Owned(elf) => elf.capacity() as u64,
    };
    let room_left = room_bytes.checked_sub(unpacked_bytes).ok_or_else(|| no_room.clone())?;
    let code = CodeObject::parse_within(&elf, room_left).map_err(|why| match why {
        ParseError::Tables { limit } if limit == room_left => no_room.clone(),
        why => why.into(),
    })?;
    code.check_relocations(|_| None)?;
    if code.cost_bytes() > room_left {
        return Err(no_room);
    }
    Ok(Loadable { elf, code })
}

impl CodeObject {
    /// Returns the memory of an emulator in bytes that the loaded code object takes at most: that of its segments, of its tables (twice,
    /// for the kernels that are looked up), and of its code once all of it is decoded.
    pub fn cost_bytes(&self) -> u64 {
        let executable = self.segments().iter().filter(|segment| segment.executable);
        let words: u64 = executable.map(|segment| segment.file.len() as u64 / 4).sum();
        let tables = self.tables_bytes().saturating_mul(2);
        let decoded = words.saturating_mul(DECODED_BYTES_PER_WORD);
        self.image_bytes().saturating_add(tables).saturating_add(decoded)
    }

    /// Iterates over the relocations that have to be applied. Objects of assembler kernels carry a symbol named `UNDEF` that nothing
    /// uses; those of it are left out.
    pub fn applied_relocations(&self) -> impl Iterator<Item = &Relocation> {
        let is_unused = |target: &RelocationTarget| matches!(target, RelocationTarget::Undefined(name) if name == "UNDEF");
        self.relocations().iter().filter(move |relocation| !is_unused(&relocation.target))
    }

    /// Iterates over the symbols that the code object needs and does not define; one may come several times.
    pub fn undefined(&self) -> impl Iterator<Item = &str> {
        self.applied_relocations().filter_map(|relocation| match &relocation.target {
            RelocationTarget::Undefined(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// Checks that every relocation has a value and lies within the loaded memory, wherever that is. `address_of` says the addresses of
    /// symbols that the code object does not define.
    ///
    /// # Errors
    /// [`LoadError::Undefined`] for a symbol that has no address, [`LoadError::Place`] for a value outside of the memory.
    pub fn check_relocations(&self, address_of: impl Fn(&str) -> Option<u64>) -> Result<(), LoadError> {
        for relocation in self.applied_relocations() {
            let (_, len) = relocation.bytes_with(0, &address_of)?;
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

    /// Returns whether a kernel can be launched: its entry point lies in an executable segment.
    pub fn is_launchable(&self, kernel: &Kernel) -> bool {
        self.segments().iter().filter(|segment| segment.executable).any(|segment| {
            // Code consists of whole words.
            let code_bytes = segment.file.len() as u64 & !3;
            kernel.entry_vaddr.wrapping_sub(segment.vaddr) < code_bytes
        })
    }
}
