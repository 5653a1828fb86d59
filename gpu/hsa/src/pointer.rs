//! Types for the pointers that HSA functions are given.
//!
//! The rows of the table of functions are written in these types, each of which is the C pointer. The values come from C callers, whose
//! side of the bargain is the standard's: a pointer that is not null points to what the prototype says, for as long as the call lasts.
//! All `unsafe` that rests on this promise is in this file.

use std::ffi::{CStr, c_char, c_void};

use crate::status::{HsaResult, Status};

/// A `void *`: an address in memory that host and agents share.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ptr(*mut c_void);

// SAFETY: an address; what uses it says why it may.
unsafe impl Send for Ptr {}
// SAFETY: as above.
unsafe impl Sync for Ptr {}

impl Ptr {
    /// The null pointer.
    pub const NULL: Self = Self(std::ptr::null_mut());

    /// Returns the pointer to this address.
    pub fn at(addr: u64) -> Self {
        Self(std::ptr::with_exposed_provenance_mut(addr as usize))
    }

    /// Returns the address.
    pub fn addr(self) -> u64 {
        self.0.expose_provenance() as u64
    }

    /// Returns whether it is the null pointer.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Returns the pointer for C.
    pub fn raw(self) -> *mut c_void {
        self.0
    }

    /// Writes an attribute's value, which has this type.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for the null pointer.
    pub(crate) fn put<T>(self, value: T) -> HsaResult {
        Out(self.0.cast::<T>()).put(value)
    }

    /// Writes the bytes of an attribute's value.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub(crate) fn put_bytes(self, bytes: &[u8]) -> HsaResult {
        if self.is_null() {
            return Err(Status::ERROR_INVALID_ARGUMENT);
        }
        // SAFETY: the caller has room for the attribute, whose size the standard says.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.cast(), bytes.len()) };
        Ok(())
    }

    /// Writes a text and zeros up to `len_bytes` bytes, the last of which is always one.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub(crate) fn put_text(self, text: &str, len_bytes: usize) -> HsaResult {
        let mut bytes = vec![0; len_bytes];
        let len = text.len().min(len_bytes.saturating_sub(1));
        bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
        self.put_bytes(&bytes)
    }

    /// Returns the `len_bytes` bytes there.
    ///
    /// # Safety
    /// They are readable, and nobody writes them during `'a`.
    pub(crate) unsafe fn bytes<'a>(self, len_bytes: usize) -> &'a [u8] {
        if len_bytes == 0 {
            return &[];
        }
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.0.cast_const().cast(), len_bytes) }
    }
}

impl std::fmt::Debug for Ptr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.addr())
    }
}

/// A `T *` that the function writes, or an array of such.
#[repr(transparent)]
pub struct Out<T>(*mut T);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T> Out<T> {
    /// Returns whether it is the null pointer.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Writes the result.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for the null pointer.
    pub(crate) fn put(self, value: T) -> HsaResult {
        if self.0.is_null() {
            return Err(Status::ERROR_INVALID_ARGUMENT);
        }
        // SAFETY: the caller's pointer to a value of this type; it need not be aligned.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Reads what is there.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for the null pointer.
    pub(crate) fn get(self) -> HsaResult<T>
    where
        T: Copy,
    {
        In(self.0.cast_const()).get()
    }

    /// Returns the first `count` values.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for the null pointer, unless there are none.
    pub(crate) fn list(self, count: usize) -> HsaResult<Vec<T>>
    where
        T: Copy,
    {
        In(self.0.cast_const()).list(count)
    }

    /// Returns the pointer to the value `index` places further on.
    pub(crate) fn offset(self, index: usize) -> Self {
        Self(self.0.wrapping_add(index))
    }

    /// Returns the pointer for reading.
    pub(crate) fn to_in(self) -> In<T> {
        In(self.0.cast_const())
    }

    /// Returns the address of the value.
    pub fn addr(self) -> u64 {
        self.0.expose_provenance() as u64
    }

    /// Returns the pointer for C.
    pub fn raw(self) -> *mut T {
        self.0
    }

    /// Returns the pointer to a value at this address.
    pub fn at(addr: u64) -> Self {
        Self(std::ptr::with_exposed_provenance_mut(addr as usize))
    }
}

/// A `const T *` that the function reads, or an array of such.
#[repr(transparent)]
pub struct In<T>(*const T);

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for In<T> {}

impl<T: Copy> In<T> {
    /// Returns the pointer to a value at this address.
    #[cfg(feature = "rig")]
    pub(crate) fn at(addr: u64) -> Self {
        Self(std::ptr::with_exposed_provenance(addr as usize))
    }

    /// Returns whether it is the null pointer.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Returns the address.
    pub fn addr(self) -> u64 {
        self.0.expose_provenance() as u64
    }

    /// Reads the value.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for the null pointer.
    pub(crate) fn get(self) -> HsaResult<T> {
        if self.0.is_null() {
            return Err(Status::ERROR_INVALID_ARGUMENT);
        }
        // SAFETY: the caller's pointer to a value of this type; it need not be aligned.
        Ok(unsafe { self.0.read_unaligned() })
    }

    /// Reads the first `count` values.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for the null pointer, unless there are none.
    pub(crate) fn list(self, count: usize) -> HsaResult<Vec<T>> {
        (0..count).map(|index| In(self.0.wrapping_add(index)).get()).collect()
    }
}

/// A `const char *`.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Str(*const c_char);

impl Str {
    /// The null pointer.
    #[cfg(feature = "rig")]
    pub(crate) const NULL: Self = Self(std::ptr::null());

    /// Returns the pointer to a text.
    #[cfg(feature = "rig")]
    pub(crate) fn of(text: &'static CStr) -> Self {
        Self(text.as_ptr())
    }

    /// Returns the text.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for the null pointer and for what is not UTF-8.
    pub(crate) fn get<'a>(self) -> HsaResult<&'a str> {
        if self.0.is_null() {
            return Err(Status::ERROR_INVALID_ARGUMENT);
        }
        // SAFETY: the caller's text, which ends with a zero byte and stays for the call.
        let text = unsafe { CStr::from_ptr(self.0) };
        text.to_str().map_err(|_| Status::ERROR_INVALID_ARGUMENT)
    }
}
