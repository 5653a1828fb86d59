//! Parses what compilers put into a HIP program for the GPU: code objects (AMDGPU ELF files), offload bundles with one code
//! object per architecture, compressed bundles, kernel metadata and kernel descriptors.
//!
//! ```text
//!  pointer or file ──► Measure / image_len   how many bytes belong to it
//!                 ──► select(image, device)  the ELF for this device (ELF, bundle or compressed bundle)
//!                 ──► CodeObject::parse      segments, globals, relocations, kernels
//!                 ──► Kernel                 parameters, kernarg layout, hidden arguments, descriptor
//! ```
//!
//! [`loadable()`] does both and says with which error a device refuses an image; [`rules`] has what the emulated GPUs say of a kernel.
//!
//! Everything here is pure parsing of untrusted bytes: no input makes it panic, what is read and allocated is bounded by the input's
//! length (`cost.rs` says how) and by the memory that the caller grants, and for compressed bundles by [`Limits`].

#![forbid(unsafe_code)]

mod bundle;
mod bytes;
mod compressed;
mod cost;
mod descriptor;
mod elf;
mod error;
mod image;
mod kernarg;
mod layout;
mod load;
mod loadable;
mod machine;
mod metadata;
mod msgpack;
mod need;
mod relocation;
pub mod rules;
mod select;
mod symbol;
mod target;

pub use bundle::{Bundle, BundleEntry};
pub use compressed::{CompressedHeader, Limits, Method, decompress};
pub use cost::{DECODED_BYTES_PER_WORD, SEGMENTS_MAX};
pub use descriptor::{FloatMode, KernelDescriptor};
pub use elf::{AbiVersion, CodeObject, Global};
pub use error::{ImageError, MetadataError, ParseError};
pub use image::{Format, Measure, image_len, needed_len};
pub use kernarg::{KernargError, LaunchFacts};
pub use layout::Segment;
pub use loadable::{Loadable, Unloadable, loadable, loadable_within};
pub use metadata::{Arg, KERNARG_MAX_BYTES, Kernel, ValueKind};
pub use need::{IMAGE_MAX_BYTES, Need};
pub use relocation::{LoadError, Relocation, RelocationKind, RelocationTarget};
pub use select::{SelectError, select, select_with};
pub use symbol::Symbol;
pub use target::{Fit, Target, TargetError};
