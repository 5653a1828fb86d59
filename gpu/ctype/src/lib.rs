//! What a Rust type is to C, so that a table of C functions can be held against their prototypes.
//!
//! [`CType`] gives the C type of a Rust type; [`c_types!`](crate::c_types!) implements it for structures.

#![no_std]
#![forbid(unsafe_code)]

use core::ffi::c_void;

/// A C type, as far as it decides how a value is passed and what it points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `void`, behind a pointer.
    Void,
    /// An integer or an enumeration.
    Integer {
        /// Size in bits.
        bits: u32,
        /// Whether it has a sign.
        signed: bool,
    },
    /// A floating-point number.
    Float {
        /// Size in bits.
        bits: u32,
    },
    /// A structure that is declared, by its C name.
    Struct(&'static str),
    /// A structure of which only pointers are known, by its C name.
    Opaque(&'static str),
    /// A pointer to data.
    Pointer {
        /// Whether what it points to is `const`.
        constant: bool,
        /// What it points to.
        to: &'static Type,
    },
    /// A pointer to a function, of this many parameters; it may be null.
    Callback {
        /// Number of parameters.
        parameters: usize,
    },
}

/// A Rust type that stands for a C type.
pub trait CType {
    /// The C type.
    const TYPE: Type;
}

impl CType for c_void {
    const TYPE: Type = Type::Void;
}

/// The result of a function that has none.
impl CType for () {
    const TYPE: Type = Type::Void;
}

macro_rules! numbers {
    ($($number:ty => $ty:expr;)*) => {
        $(impl CType for $number {
            const TYPE: Type = $ty;
        })*
    };
}

numbers! {
    i8 => Type::Integer { bits: 8, signed: true };
    i16 => Type::Integer { bits: 16, signed: true };
    i32 => Type::Integer { bits: 32, signed: true };
    i64 => Type::Integer { bits: 64, signed: true };
    isize => Type::Integer { bits: isize::BITS, signed: true };
    u8 => Type::Integer { bits: 8, signed: false };
    u16 => Type::Integer { bits: 16, signed: false };
    u32 => Type::Integer { bits: 32, signed: false };
    u64 => Type::Integer { bits: 64, signed: false };
    usize => Type::Integer { bits: usize::BITS, signed: false };
    f32 => Type::Float { bits: 32 };
    f64 => Type::Float { bits: 64 };
}

impl<T: CType> CType for *const T {
    const TYPE: Type = Type::Pointer { constant: true, to: &T::TYPE };
}

impl<T: CType> CType for *mut T {
    const TYPE: Type = Type::Pointer { constant: false, to: &T::TYPE };
}

macro_rules! callbacks {
    ($($count:literal: $($arg:ident)*;)*) => {$(
        impl<$($arg),*> CType for Option<unsafe extern "C" fn($($arg),*)> {
            const TYPE: Type = Type::Callback { parameters: $count };
        }
    )*};
}

callbacks! {
    1: A;
    2: A B;
    3: A B C;
}

/// Implements [`CType`] for structures whose C names equal their Rust names.
///
/// `opaque` declares structures of which only pointers are known; `declared` names `#[repr(C)]` structures.
#[macro_export]
macro_rules! c_types {
    (opaque { $($(#[$doc:meta])* $opaque:ident),* $(,)? } declared { $($declared:ident),* $(,)? }) => {
        $(
            $(#[$doc])*
            #[repr(C)]
            pub struct $opaque {
                _bytes: [u8; 0],
                // Not Send, not Sync, not Unpin: what stands there is the library's.
                _nothing_known: ::core::marker::PhantomData<(*mut u8, ::core::marker::PhantomPinned)>,
            }

            impl $crate::CType for $opaque {
                const TYPE: $crate::Type = $crate::Type::Opaque(stringify!($opaque));
            }
        )*
        $(
            impl $crate::CType for $declared {
                const TYPE: $crate::Type = $crate::Type::Struct(stringify!($declared));
            }
        )*
    };
}
