//! Dynamic relocations.

use std::ops::Range;

use thiserror::Error;

macro_rules! relocation_kinds {
    ($($(#[$doc:meta])* $variant:ident = $number:literal,)*) => {
        /// The formula for the value of a relocation from the symbol's address S, the addend A, the relocated address P and the
        /// load address B (LLVM's AMDGPU usage guide, "Relocation Records").
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum RelocationKind {
            $($(#[$doc])* $variant,)*
        }

        impl RelocationKind {
            /// Returns the kind with this `R_AMDGPU_*` number.
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

/// The target of a relocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RelocationTarget {
    /// An address in this code object, relative to its load address.
    Vaddr(u64),
    /// A number that does not depend on the load address.
    Absolute(u64),
    /// A symbol that the code object does not define.
    Undefined(String),
}

/// A value in the code object that depends on its load address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relocation {
    /// Address of the value, relative to the load address.
    pub vaddr: u64,
    /// The formula for the value.
    pub kind: RelocationKind,
    /// The target.
    pub target: RelocationTarget,
    /// Added to the target's address.
    pub addend: i64,
}

/// Why a code object cannot be loaded into memory.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LoadError {
    /// The memory is smaller than [`crate::CodeObject::image_bytes`].
    #[error("the memory has {len} bytes, the code object needs {needed}")]
    Memory {
        /// Size of the memory in bytes.
        len: u64,
        /// Bytes needed.
        needed: u64,
    },
    /// The file is not the one that the code object was parsed from.
    #[error("segment bytes {0:?} are outside of the file")]
    File(Range<usize>),
    /// A symbol is not defined.
    #[error("symbol {0} is not defined")]
    Undefined(String),
    /// A relocated value lies outside of the loaded memory.
    #[error("a relocation at {0:#x} lies outside of the code object")]
    Place(u64),
}

impl Relocation {
    /// Returns the bytes to store when the code object is loaded at `base`, and how many of them are used.
    ///
    /// # Errors
    /// [`LoadError::Undefined`] if the symbol is not defined.
    pub fn bytes(&self, base: u64) -> Result<([u8; 8], usize), LoadError> {
        self.bytes_with(base, |_| None)
    }

    /// Returns the same as [`bytes`](Self::bytes), where `address_of` says the addresses of symbols that the code object does not define.
    ///
    /// # Errors
    /// [`LoadError::Undefined`] if it does not know the symbol.
    pub fn bytes_with(
        &self,
        base: u64,
        address_of: impl Fn(&str) -> Option<u64>,
    ) -> Result<([u8; 8], usize), LoadError> {
        let target = match &self.target {
            RelocationTarget::Vaddr(vaddr) => base.wrapping_add(*vaddr),
            RelocationTarget::Absolute(value) => *value,
            RelocationTarget::Undefined(name) => {
                address_of(name).ok_or_else(|| LoadError::Undefined(name.clone()))?
            }
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
