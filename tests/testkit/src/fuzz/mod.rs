//! The fuzz targets as functions: each takes any bytes and panics if a property does not hold.
//!
//! `fuzz/fuzz_targets/` has one line per function for libFuzzer, `fuzz/corpus/` the inputs that a run starts from, and
//! `tests/corpus.rs` runs each of them here, with any toolchain.

mod bytes;
mod codec;
#[cfg(feature = "gpu")]
mod device;
pub mod dictionary;
#[cfg(feature = "keys")]
mod identity;
#[cfg(feature = "gpu")]
mod image;
#[cfg(feature = "gpu")]
mod isa;
#[cfg(feature = "gpu")]
mod kernel;
#[cfg(feature = "gpu")]
mod packed;
#[cfg(feature = "hsa")]
mod packets;
#[cfg(feature = "resume")]
mod resume;
mod script;

pub use bytes::{client_bytes, server_bytes};
pub use codec::codec_roundtrip;
#[cfg(feature = "keys")]
pub use identity::identity;
#[cfg(feature = "gpu")]
pub use image::{bundle, code_object};
#[cfg(feature = "gpu")]
pub use isa::isa_decode;
#[cfg(feature = "gpu")]
pub use kernel::kernel_step;
#[cfg(feature = "gpu")]
pub use packed::packed;
#[cfg(feature = "hsa")]
pub use packets::packets;
#[cfg(feature = "resume")]
pub use resume::resume;
pub use script::{pair, server_script};

/// A fuzz target, which panics if a property does not hold.
pub type Target = fn(&[u8]);

/// All targets, by the names of their files and corpora.
pub const TARGETS: &[(&str, Target)] = &[
    #[cfg(feature = "gpu")]
    ("bundle", bundle),
    ("client_bytes", client_bytes),
    #[cfg(feature = "gpu")]
    ("code_object", code_object),
    ("codec_roundtrip", codec_roundtrip),
    #[cfg(feature = "keys")]
    ("identity", identity),
    #[cfg(feature = "gpu")]
    ("isa_decode", isa_decode),
    #[cfg(feature = "gpu")]
    ("kernel_step", kernel_step),
    #[cfg(feature = "gpu")]
    ("packed", packed),
    #[cfg(feature = "hsa")]
    ("packets", packets),
    ("pair", pair),
    #[cfg(feature = "resume")]
    ("resume", resume),
    ("server_bytes", server_bytes),
    ("server_script", server_script),
];
