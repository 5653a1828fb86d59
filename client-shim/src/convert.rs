//! Types for the kinds of parameters that HIP functions have.
//!
//! The rows of the export table are written in these types. Each is `#[repr(transparent)]` over the C type
//! it stands for, so that a row is the C signature; what a body may do with a parameter is what its type
//! offers here. The values come from C callers, whose side of the bargain is HIP's: a pointer that is not null
//! points to what the prototype says, for as long as the call lasts. All `unsafe` that rests on this promise is
//! in this file.

use core::ffi::{CStr, c_char};
use core::marker::PhantomData;

use hipr_proto::{HipError, HipResult};

/// A `void *` or `hipDeviceptr_t`: an address, on the host or on the device, or an opaque handle.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ptr(pub usize);

/// Addresses below this one stand for the null pointer and what is near it; no memory is mapped there.
const MEMORY_START: u64 = 64 << 10;
/// End of the addresses that programs can have on the platforms that HIP supports.
const MEMORY_END: u64 = 1 << 48;

impl Ptr {
    /// The null pointer.
    pub const NULL: Self = Self(0);

    /// Returns whether this is the null pointer.
    pub fn is_null(self) -> bool {
        self.0 == 0
    }

    /// Returns the address as the wire carries it.
    pub fn wire(self) -> u64 {
        self.0 as u64
    }

    /// Returns the address that a worker has given to `len` bytes of memory.
    ///
    /// # Errors
    /// `hipErrorUnknown` for one that no memory has: at the null pointer, or beyond what processors can address.
    pub fn of_memory(address: u64, len: u64) -> HipResult<Self> {
        let end = address.checked_add(len).filter(|end| address >= MEMORY_START && *end <= MEMORY_END);
        if end.is_none() {
            tracing::error!("the worker gives {len} bytes of memory the address {address:#x}");
            return Err(HipError::UNKNOWN);
        }
        Ok(Self::from_wire(address))
    }

    /// Returns an address received over the wire. Addresses have 64 bits on every platform HIP has.
    pub fn from_wire(address: u64) -> Self {
        Self(address as usize)
    }

    /// Returns the address `bytes` bytes further on.
    pub fn offset(self, bytes: usize) -> Self {
        Self(self.0.wrapping_add(bytes))
    }

    /// Returns the address as a Rust pointer.
    pub fn as_mut_ptr<T>(self) -> *mut T {
        core::ptr::with_exposed_provenance_mut(self.0)
    }

    /// Returns the address; fails with `hipErrorInvalidValue` for the null pointer.
    pub fn check(self) -> HipResult<Self> {
        if self.is_null() { Err(HipError::INVALID_VALUE) } else { Ok(self) }
    }

    /// Returns the `len` bytes of host memory at this address.
    ///
    /// # Safety
    /// They are readable and nobody writes them during `'a`.
    pub unsafe fn host_bytes<'a>(self, len: usize) -> &'a [u8] {
        if len == 0 {
            return &[];
        }
        // SAFETY: the caller's promise.
        unsafe { core::slice::from_raw_parts(self.as_mut_ptr(), len) }
    }

    /// Returns the `len` bytes of host memory at this address, for writing.
    ///
    /// # Safety
    /// They are writable and nobody else uses them during `'a`.
    pub unsafe fn host_bytes_mut<'a>(self, len: usize) -> &'a mut [u8] {
        if len == 0 {
            return &mut [];
        }
        // SAFETY: the caller's promise.
        unsafe { core::slice::from_raw_parts_mut(self.as_mut_ptr(), len) }
    }
}

impl<T> From<*mut T> for Ptr {
    fn from(pointer: *mut T) -> Self {
        Self(pointer.expose_provenance())
    }
}

impl<T> From<*const T> for Ptr {
    fn from(pointer: *const T) -> Self {
        Self(pointer.expose_provenance())
    }
}

impl core::fmt::Debug for Ptr {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// A pointer to a `T`, or to an array of them, that a function writes: `T *`.
#[repr(transparent)]
pub struct Out<T>(*mut T);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T: Copy> Out<T> {
    /// The null pointer, to which nothing is written.
    pub const NULL: Self = Self(core::ptr::null_mut());

    /// Returns a pointer to `value`.
    pub fn to(value: &mut T) -> Self {
        Self(value)
    }

    /// Returns a pointer to the value at `address`.
    pub fn at_address(address: Ptr) -> Self {
        Self(address.as_mut_ptr())
    }

    /// Returns whether this is the null pointer.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Returns the pointer; fails with `hipErrorInvalidValue` if it is null.
    pub fn check(self) -> HipResult<Self> {
        if self.is_null() { Err(HipError::INVALID_VALUE) } else { Ok(self) }
    }

    /// Writes `value`; does nothing if the pointer is null.
    pub fn set(self, value: T) {
        self.set_at(0, value);
    }

    /// Writes element `index` of an array; does nothing if the pointer is null.
    pub fn set_at(self, index: usize, value: T) {
        if !self.0.is_null() {
            // SAFETY: the C caller promises an array of as many elements as the function's other
            // parameters say, and bodies do not go beyond them.
            unsafe { self.0.add(index).write_unaligned(value) }
        }
    }

    /// Returns the value at the pointer; None if it is null.
    pub fn value(self) -> Option<T> {
        // SAFETY: the C caller promises a `T` there wherever the function reads its parameter.
        (!self.0.is_null()).then(|| unsafe { self.0.read_unaligned() })
    }

    /// Returns element `index` of an array that is read and written; None if the pointer is null.
    pub fn value_at(self, index: usize) -> Option<T> {
        // SAFETY: as for `set_at`.
        (!self.0.is_null()).then(|| unsafe { self.0.add(index).read_unaligned() })
    }

    /// Returns the address, as a key.
    pub fn address(self) -> Ptr {
        Ptr(self.0.expose_provenance())
    }
}

/// A pointer to a `T`, or to an array of them, that a function reads: `const T *`.
#[repr(transparent)]
pub struct In<T>(*const T);

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for In<T> {}

impl<T> core::fmt::Debug for In<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "In({:?})", self.0)
    }
}

impl<T: Copy> In<T> {
    /// The null pointer.
    pub const NULL: Self = Self(core::ptr::null());

    /// Returns a pointer to `value`.
    pub fn from(value: &T) -> Self {
        Self(value)
    }

    /// Returns a pointer to the value at `address`.
    pub fn at_address(address: Ptr) -> Self {
        Self(address.as_mut_ptr())
    }

    /// Returns a pointer to an array.
    pub fn from_slice(values: &[T]) -> Self {
        Self(values.as_ptr())
    }

    /// Returns whether this is the null pointer.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Returns the value; None for a null pointer.
    pub fn value(self) -> Option<T> {
        self.at(0)
    }

    /// Returns element `index` of an array; None for a null pointer.
    pub fn at(self, index: usize) -> Option<T> {
        // SAFETY: the C caller promises an array of as many elements as the function's other parameters
        // (or an end mark) say, and bodies do not go beyond them.
        (!self.0.is_null()).then(|| unsafe { self.0.add(index).read_unaligned() })
    }

    /// Returns the value; fails with `hipErrorInvalidValue` for a null pointer.
    pub fn check(self) -> HipResult<T> {
        self.value().ok_or(HipError::INVALID_VALUE)
    }
}

/// A string that a function reads or returns: `const char *`.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Str(*const c_char, PhantomData<&'static CStr>);

impl Str {
    /// The null pointer.
    pub const NULL: Self = Self(core::ptr::null(), PhantomData);

    /// Returns a string that lives as long as the process, for functions to return.
    pub const fn of(text: &'static CStr) -> Self {
        Self(text.as_ptr(), PhantomData)
    }

    /// Returns the bytes before the NUL; None for a null pointer.
    pub fn bytes<'a>(self) -> Option<&'a [u8]> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: the C caller promises a string that ends in NUL and stays as it is during the call;
        // no body keeps the slice beyond it.
        Some(unsafe { CStr::from_ptr(self.0) }.to_bytes())
    }
}

/// A buffer for a string: `char *`, with its size in another parameter.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Chars(*mut c_char);

impl Chars {
    /// Returns whether the pointer is null.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Writes as much of `text` as fits in `size_bytes` with its terminating NUL.
    pub fn set(self, text: &[u8], size_bytes: usize) {
        if self.0.is_null() || size_bytes == 0 {
            return;
        }
        let n = text.len().min(size_bytes - 1);
        // SAFETY: the C caller promises `size_bytes` bytes there; n + 1 are written.
        unsafe {
            core::ptr::copy_nonoverlapping(text.as_ptr(), self.0.cast(), n);
            self.0.add(n).write(0);
        }
    }
}

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub usize);

        impl $name {
            /// The null handle.
            pub const NULL: Self = Self(0);

            /// Returns whether this is the null handle.
            pub fn is_null(self) -> bool {
                self.0 == 0
            }

            /// Returns a handle received over the wire.
            pub fn from_wire(handle: u64) -> Self {
                Self(handle as usize)
            }

            /// Returns the handle as the wire carries it.
            pub fn wire(self) -> u64 {
                self.0 as u64
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, concat!(stringify!($name), "({:#x})"), self.0)
            }
        }
    )*};
}

handles! {
    /// A `hipStream_t`: 0 and 1 are the legacy stream, 2 is the calling thread's own.
    Stream;
    /// A `hipEvent_t`.
    Event;
    /// A `hipModule_t`.
    Module;
    /// A `hipFunction_t`.
    Function;
    /// A `hipCtx_t`.
    Context;
}

impl From<hipr_abi::hipStream_t> for Stream {
    fn from(stream: hipr_abi::hipStream_t) -> Self {
        Self(stream.expose_provenance())
    }
}

/// Returns the value of an attribute whose id is `hipLaunchAttributeCooperative`.
pub fn cooperative(value: &hipr_abi::hipLaunchAttributeValue) -> i32 {
    // SAFETY: any bytes are an int; that all of the union's are initialized is the promise of `const hipLaunchAttribute *`.
    unsafe { value.cooperative }
}
