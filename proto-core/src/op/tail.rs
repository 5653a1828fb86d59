//! Tails, which follow the fixed part of a message: lengths, names, kernel arguments.

use super::define::layout;
use super::{LaunchKernel, Memcpy2D, Memcpy3D};
use crate::wire::{Array, Sink, Wire, WireError};

layout! {
    /// Descriptor of a kernel argument: its offset and size in the argument data, in bytes.
    Param { offset: u32, size: u32 }
}

layout! {
    /// An edge of a graph between two nodes.
    Edge { from: u64, to: u64 }
}

/// The values of `hipMemcpyKind`.
pub mod kind {
    /// Copies from host memory to host memory.
    pub const HOST_TO_HOST: i32 = 0;
    /// Copies from host to device; the request carries the bytes.
    pub const HOST_TO_DEVICE: i32 = 1;
    /// Copies from device to host; the reply carries the bytes.
    pub const DEVICE_TO_HOST: i32 = 2;
    /// Copies from device to device; no bytes are transmitted.
    pub const DEVICE_TO_DEVICE: i32 = 3;
    /// The addresses decide. A client replaces it before it sends, because only the client knows its own addresses.
    pub const DEFAULT: i32 = 4;
}

pub(super) fn is_d2h(kind: i32) -> bool {
    kind == kind::DEVICE_TO_HOST
}

/// Returns how many inline bytes a copy's request has.
pub(super) fn h2d(kind: i32, len_bytes: u64) -> u64 {
    if kind == kind::HOST_TO_DEVICE { len_bytes } else { 0 }
}

/// Returns how many inline bytes a copy's reply has.
pub(super) fn d2h(kind: i32, len_bytes: u64) -> u64 {
    if is_d2h(kind) { len_bytes } else { 0 }
}

/// Returns the size of `count` values in bytes; `u64::MAX`, which no message can have, if the count is negative.
pub(super) fn items<T: Wire>(count: impl TryInto<u32>) -> u64 {
    count.try_into().map_or(u64::MAX, |count| u64::from(count) * T::SIZE as u64)
}

impl Memcpy2D {
    /// Returns the number of bytes that are copied; `u64::MAX` if the product overflows.
    pub fn len_bytes(&self) -> u64 {
        self.width.saturating_mul(self.height)
    }
}

impl Memcpy3D {
    /// Returns the number of bytes that are copied; `u64::MAX` if the product overflows.
    pub fn len_bytes(&self) -> u64 {
        self.width.saturating_mul(self.height).saturating_mul(self.depth)
    }
}

impl LaunchKernel {
    /// Returns whether events measure the launch; the client then waits for the reply.
    pub fn is_timed(&self) -> bool {
        self.start_event != 0 || self.stop_event != 0
    }
}

/// Length in bytes of the longest name that a worker accepts.
pub const NAME_MAX_BYTES: usize = 1024;

/// Size in bytes to which a client pads a name that fits with its NUL (`cstr[256]`).
pub const NAME_FIELD_BYTES: usize = 256;

/// Reads the name in the tail of `MODULE_GET_FUNCTION` or `MODULE_GET_GLOBAL`, up to the first NUL.
///
/// # Errors
/// A name that is empty, not UTF-8, or longer than [`NAME_MAX_BYTES`].
pub fn name_of(tail: &[u8]) -> Result<&str, WireError> {
    let name = tail.split(|byte| *byte == 0).next().unwrap_or(&[]);
    if name.len() > NAME_MAX_BYTES {
        return Err(WireError::Long { have: name.len() as u64, max: NAME_MAX_BYTES as u64 });
    }
    match core::str::from_utf8(name) {
        Ok(name) if !name.is_empty() => Ok(name),
        _ => Err(WireError::Name),
    }
}

/// Appends a name as the tail of `MODULE_GET_FUNCTION` or `MODULE_GET_GLOBAL`: padded with NULs to [`NAME_FIELD_BYTES`], or
/// followed by one NUL if it is too long for that.
///
/// # Errors
/// A name that is empty, contains a NUL, or is longer than [`NAME_MAX_BYTES`].
pub fn put_name(name: &str, out: &mut impl Sink) -> Result<(), WireError> {
    if name_of(name.as_bytes())?.len() != name.len() {
        return Err(WireError::Name);
    }
    const PADDING: [u8; NAME_FIELD_BYTES] = [0; NAME_FIELD_BYTES];
    out.put_bytes(name.as_bytes());
    out.put_bytes(PADDING.get(name.len()..).filter(|rest| !rest.is_empty()).unwrap_or(&[0]));
    Ok(())
}

/// How a launch passes its arguments (`launch_flags`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaunchMode {
    /// 0: one descriptor per argument, from which the worker builds `kernelParams`.
    Params,
    /// 1: one descriptor for a buffer that is laid out like the kernel's explicit arguments (`extra`).
    Flat,
}

/// The arguments of a launch. Every descriptor has been checked to lie inside the data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LaunchArgs<'a> {
    mode: LaunchMode,
    params: Array<'a, Param>,
    data: &'a [u8],
}

impl<'a> LaunchArgs<'a> {
    /// Reads the arguments from the tail of a launch.
    ///
    /// # Errors
    /// An argument table that is longer than the tail, an argument outside the data, `launch_flags` other than 0 and 1, or
    /// a flat buffer with more than one descriptor.
    #[inline]
    pub fn parse(request: &LaunchKernel, mut tail: &'a [u8]) -> Result<Self, WireError> {
        let params = Array::<Param>::take(&mut tail, u64::from(request.num_args))?;
        let mode = match request.launch_flags {
            0 => LaunchMode::Params,
            1 if request.num_args <= 1 => LaunchMode::Flat,
            _ => return Err(WireError::Value),
        };
        let args = Self { mode, params, data: tail };
        let is_outside = |param: Param| u64::from(param.offset) + u64::from(param.size) > tail.len() as u64;
        match params.iter().position(is_outside) {
            Some(index) => Err(WireError::Argument { index: index as u32 }),
            None => Ok(args),
        }
    }

    /// Appends the tail of a launch; `params` describes the arguments in `data`.
    pub fn put(params: &[Param], data: &[u8], out: &mut impl Sink) {
        for param in params {
            param.put(out);
        }
        out.put_bytes(data);
    }

    /// Returns how the arguments are passed.
    #[inline]
    pub fn mode(&self) -> LaunchMode {
        self.mode
    }

    /// Returns the descriptors.
    #[inline]
    pub fn params(&self) -> Array<'a, Param> {
        self.params
    }

    /// Returns the bytes that the descriptors refer to.
    #[inline]
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// Iterates over the bytes of each argument.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let args = *self;
        args.params.iter().map(move |param| args.slice(param).unwrap_or(&[]))
    }

    /// Returns the flat buffer: the bytes of the one descriptor, or all data if there is no descriptor.
    pub fn flat(&self) -> &'a [u8] {
        self.params.at(0).map_or(self.data, |param| self.slice(param).unwrap_or(&[]))
    }

    #[inline]
    fn slice(&self, param: Param) -> Option<&'a [u8]> {
        let start = usize::try_from(param.offset).ok()?;
        let end = start.checked_add(usize::try_from(param.size).ok()?)?;
        self.data.get(start..end)
    }
}
