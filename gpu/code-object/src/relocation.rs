//! Dynamic relocations, and putting a code object into memory.

use std::ops::Range;

use thiserror::Error;

use crate::CodeObject;

macro_rules! relocation_kinds {
    ($($(#[$doc:meta])* $variant:ident = $number:literal,)*) => {
        /// How a relocated place is computed: S the symbol's address, A the addend, P the place's address, B the
        /// address the code object is loaded at (LLVM's AMDGPU usage guide, "Relocation Records").
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum RelocationKind {
            $($(#[$doc])* $variant,)*
        }

        impl RelocationKind {
            /// The kind of this `R_AMDGPU_*` number.
            pub fn of(number: u32) -> Option<RelocationKind> {
                match number {
                    $($number => Some(RelocationKind::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

relocation_kinds! {
    /// `R_AMDGPU_ABS32_LO`: low half of S + A.
    Abs32Lo = 1,
    /// `R_AMDGPU_ABS32_HI`: high half of S + A.
    Abs32Hi = 2,
    /// `R_AMDGPU_ABS64`: S + A.
    Abs64 = 3,
    /// `R_AMDGPU_REL32`: S + A - P, 4 bytes.
    Rel32 = 4,
    /// `R_AMDGPU_REL64`: S + A - P.
    Rel64 = 5,
    /// `R_AMDGPU_ABS32`: S + A, 4 bytes.
    Abs32 = 6,
    /// `R_AMDGPU_REL32_LO`: low half of S + A - P.
    Rel32Lo = 10,
    /// `R_AMDGPU_REL32_HI`: high half of S + A - P.
    Rel32Hi = 11,
    /// `R_AMDGPU_RELATIVE64`: B + A.
    Relative64 = 13,
}

/// What a relocation points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RelocationTarget {
    /// An address of this code object, relative to where it is loaded.
    Vaddr(u64),
    /// A number, wherever the code object is loaded.
    Absolute(u64),
    /// A symbol that the code object does not define.
    Undefined(String),
}

/// A place that depends on where the code object is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relocation {
    /// The place, relative to where the code object is loaded.
    pub vaddr: u64,
    /// What to compute.
    pub kind: RelocationKind,
    /// What it points to.
    pub target: RelocationTarget,
    /// Added to the target's address.
    pub addend: i64,
}

/// Why a code object cannot be put into memory.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LoadError {
    /// The memory is smaller than [`CodeObject::image_bytes`].
    #[error("the memory has {len} bytes, the code object needs {needed}")]
    Memory {
        /// Bytes given.
        len: u64,
        /// Bytes needed.
        needed: u64,
    },
    /// These are not the bytes that the code object was parsed from.
    #[error("segment bytes {0:?} are outside of the file")]
    File(Range<usize>),
    /// Nothing defines a symbol.
    #[error("symbol {0} is not defined")]
    Undefined(String),
    /// A relocated place lies outside of the loaded memory.
    #[error("a relocation of {0:#x}, which is outside of the code object")]
    Place(u64),
}

impl Relocation {
    /// The bytes to store at the place when the code object is loaded at `base`.
    pub fn bytes(&self, base: u64) -> Result<([u8; 8], usize), LoadError> {
        let target = match &self.target {
            RelocationTarget::Vaddr(vaddr) => base.wrapping_add(*vaddr),
            RelocationTarget::Absolute(value) => *value,
            RelocationTarget::Undefined(name) => return Err(LoadError::Undefined(name.clone())),
        };
        let absolute = target.wrapping_add_signed(self.addend);
        let relative = absolute.wrapping_sub(base.wrapping_add(self.vaddr));
        use RelocationKind as K;
        let (value, len) = match self.kind {
            K::Abs64 | K::Relative64 => (absolute, 8),
            K::Abs32 | K::Abs32Lo => (absolute, 4),
            K::Abs32Hi => (absolute >> 32, 4),
            K::Rel64 => (relative, 8),
            K::Rel32 | K::Rel32Lo => (relative, 4),
            K::Rel32Hi => (relative >> 32, 4),
        };
        Ok((value.to_le_bytes(), len))
    }
}

impl CodeObject {
    /// Puts the segments of `elf`, the bytes this was parsed from, into `memory` as it is when loaded at address
    /// `base`, and relocates it. `memory` starts at `base` and has [`CodeObject::image_bytes`] bytes or more; bytes
    /// between segments are zeroed. `base` must be a multiple of every segment's alignment (4096, from all compilers).
    pub fn load(&self, elf: &[u8], base: u64, memory: &mut [u8]) -> Result<(), LoadError> {
        let (needed, len) = (self.image_bytes(), memory.len() as u64);
        let outside = LoadError::Memory { len, needed };
        let memory = usize::try_from(needed)
            .ok()
            .and_then(|needed| memory.get_mut(..needed))
            .ok_or(outside.clone())?;
        memory.fill(0);
        for segment in self.segments() {
            let bytes = elf.get(segment.file.clone()).ok_or_else(|| LoadError::File(segment.file.clone()))?;
            slice(memory, segment.vaddr, bytes.len()).ok_or_else(|| outside.clone())?.copy_from_slice(bytes);
        }
        for relocation in self.relocations() {
            let (value, len) = relocation.bytes(base)?;
            let place = slice(memory, relocation.vaddr, len).ok_or(LoadError::Place(relocation.vaddr))?;
            place.copy_from_slice(value.get(..len).unwrap_or_default());
        }
        Ok(())
    }
}

fn slice(memory: &mut [u8], vaddr: u64, len: usize) -> Option<&mut [u8]> {
    memory.get_mut(usize::try_from(vaddr).ok()?..)?.get_mut(..len)
}
