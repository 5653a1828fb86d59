//! Encoding of fields on the wire: little-endian, packed, of fixed size.
//!
//! [`Wire`] is everything that has a fixed layout: numbers, arrays, padded text, and the request and reply structs of
//! [`op`](crate::op), whose impls the operation table generates. What follows a fixed part (a *tail*) is bytes, and
//! [`Array`] reads it.

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use smallvec::SmallVec;

use crate::hip_error::HipError;

/// A value whose encoding has a fixed size.
pub trait Wire: Sized {
    /// Encoded size in bytes.
    const SIZE: usize;

    /// The layout in the notation of `docs/protocol.md` (`u32`, `cstr[256]`, …).
    const LAYOUT: Layout;

    /// The value that is encoded as all zeros; a base for `Reply { field, ..Wire::ZERO }`.
    const ZERO: Self;

    /// Appends the encoding, exactly [`SIZE`](Self::SIZE) bytes, to `out`.
    fn put(&self, out: &mut impl Sink);

    /// Decodes the value from the front of `input` and advances it by [`SIZE`](Self::SIZE) bytes.
    ///
    /// # Errors
    /// [`WireError::Short`] when fewer bytes are left; `input` is then unspecified.
    fn take(input: &mut &[u8]) -> Result<Self, WireError>;
}

/// A buffer that encoded bytes are appended to: a `Vec`, or a `SmallVec` for short encodings.
pub trait Sink {
    /// Appends `bytes`.
    fn put_bytes(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    #[inline]
    fn put_bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// A buffer of `N` bytes for the encoding of one value, which is then appended to another sink at once.
pub(crate) struct Packed<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Packed<N> {
    #[inline]
    pub(crate) fn new() -> Self {
        Self { bytes: [0; N], len: 0 }
    }

    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8; N] {
        debug_assert_eq!(self.len, N, "a value is as long as its layout says");
        &self.bytes
    }
}

impl<const N: usize> Sink for Packed<N> {
    #[inline]
    fn put_bytes(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if let Some(space) = self.bytes.get_mut(self.len..end) {
            space.copy_from_slice(bytes);
        }
        self.len = end;
    }
}

impl<const N: usize> Sink for SmallVec<[u8; N]>
where
    [u8; N]: smallvec::Array<Item = u8>,
{
    #[inline]
    fn put_bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// An error in the layout of a request. The request fails with `hipErrorInvalidValue` (HIPR 1.0, rule 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireError {
    /// The layout needs more bytes than the message has.
    Short {
        /// Bytes that the layout needs.
        need: u64,
        /// Bytes that the message has.
        have: u64,
    },
    /// A part is longer than allowed.
    Long {
        /// Length of the part in bytes.
        have: u64,
        /// Allowed length in bytes.
        max: u64,
    },
    /// A kernel argument lies outside the argument data.
    Argument {
        /// Index of the argument.
        index: u32,
    },
    /// A name is empty or is not UTF-8.
    Name,
    /// A field has a value that the protocol does not define.
    Value,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { need, have } => write!(f, "the layout needs {need} bytes, the message has {have}"),
            Self::Long { have, max } => {
                write!(f, "a part of the message has {have} bytes, at most {max} are allowed")
            }
            Self::Argument { index } => write!(f, "argument {index} lies outside the argument data"),
            Self::Name => f.write_str("the name is empty or not UTF-8"),
            Self::Value => f.write_str("a field has an undefined value"),
        }
    }
}

impl core::error::Error for WireError {}

impl From<WireError> for HipError {
    fn from(_: WireError) -> Self {
        Self::INVALID_VALUE
    }
}

/// The layout of a [`Wire`] type; `Display` writes it in the notation of `docs/protocol.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// A number; the name is its Rust type.
    Number(&'static str),
    /// Text of this many bytes, padded with NULs.
    Text(usize),
    /// An array: the layout of an element, and their number.
    Array(&'static Layout, usize),
    /// Fields, one after another without padding.
    Fields(&'static [Field]),
}

/// A named field of a fixed layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Name of the field.
    pub name: &'static str,
    /// Layout of the field.
    pub layout: Layout,
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(name) => f.write_str(name),
            Self::Text(n) => write!(f, "cstr[{n}]"),
            Self::Array(Layout::Number("u8"), n) => write!(f, "bytes[{n}]"),
            Self::Array(Layout::Fields(fields), n) => write!(f, "{{{}}}[{n}]", Layout::Fields(fields)),
            Self::Array(of, n) => write!(f, "{of}[{n}]"),
            Self::Fields(fields) => {
                for (i, field) in fields.iter().enumerate() {
                    let space = if i == 0 { "" } else { " " };
                    write!(f, "{space}{}:{}", field.name, field.layout)?;
                }
                Ok(())
            }
        }
    }
}

/// Splits `n` bytes from the front of `input`.
#[inline]
pub(crate) fn split<'a>(input: &mut &'a [u8], n: usize) -> Result<&'a [u8], WireError> {
    let (head, rest) =
        input.split_at_checked(n).ok_or(WireError::Short { need: n as u64, have: input.len() as u64 })?;
    *input = rest;
    Ok(head)
}

macro_rules! numbers {
    ($($t:ident),*) => { $(
        impl Wire for $t {
            const SIZE: usize = size_of::<$t>();
            const LAYOUT: Layout = Layout::Number(stringify!($t));
            const ZERO: Self = 0 as $t;

            #[inline]
            fn put(&self, out: &mut impl Sink) {
                out.put_bytes(&self.to_le_bytes());
            }

            #[inline]
            fn take(input: &mut &[u8]) -> Result<Self, WireError> {
                let have = input.len() as u64;
                let (head, rest) = input.split_first_chunk().ok_or(WireError::Short { need: Self::SIZE as u64, have })?;
                *input = rest;
                Ok(<$t>::from_le_bytes(*head))
            }
        }
    )* };
}
numbers!(u8, u16, u32, u64, i32, f32);

/// The fixed part of a reply without fields.
impl Wire for () {
    const SIZE: usize = 0;
    const LAYOUT: Layout = Layout::Fields(&[]);
    const ZERO: Self = ();

    fn put(&self, _out: &mut impl Sink) {}

    fn take(_input: &mut &[u8]) -> Result<Self, WireError> {
        Ok(())
    }
}

impl<T: Wire, const N: usize> Wire for [T; N] {
    const SIZE: usize = T::SIZE * N;
    const LAYOUT: Layout = Layout::Array(&T::LAYOUT, N);
    const ZERO: Self = [const { T::ZERO }; N];

    fn put(&self, out: &mut impl Sink) {
        for item in self {
            item.put(out);
        }
    }

    fn take(input: &mut &[u8]) -> Result<Self, WireError> {
        if input.len() < Self::SIZE {
            return Err(WireError::Short { need: Self::SIZE as u64, have: input.len() as u64 });
        }
        let mut all = Self::ZERO;
        for item in &mut all {
            *item = T::take(input)?;
        }
        Ok(all)
    }
}

/// Text in a field of `N` bytes, padded with NULs (`cstr[N]`).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Text<const N: usize>([u8; N]);

impl<const N: usize> Text<N> {
    /// Creates a field with `text`, truncated at a character boundary so that at least one NUL follows it.
    pub fn new(text: &str) -> Self {
        let text = text.get(..text.floor_char_boundary(N.saturating_sub(1))).unwrap_or("");
        let mut bytes = [0; N];
        for (to, from) in bytes.iter_mut().zip(text.bytes()) {
            *to = from;
        }
        Self(bytes)
    }

    /// Returns the text before the first NUL, up to the first byte that is not UTF-8.
    pub fn as_str(&self) -> &str {
        let text = self.0.split(|b| *b == 0).next().unwrap_or(&[]);
        text.utf8_chunks().next().map_or("", |chunk| chunk.valid())
    }

    /// Returns all `N` bytes including the padding.
    pub fn as_bytes(&self) -> &[u8; N] {
        &self.0
    }
}

impl<const N: usize> From<&str> for Text<N> {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl<const N: usize> Wire for Text<N> {
    const SIZE: usize = N;
    const LAYOUT: Layout = Layout::Text(N);
    const ZERO: Self = Self([0; N]);

    fn put(&self, out: &mut impl Sink) {
        out.put_bytes(&self.0);
    }

    fn take(input: &mut &[u8]) -> Result<Self, WireError> {
        let have = input.len() as u64;
        let (head, rest) = input.split_first_chunk().ok_or(WireError::Short { need: N as u64, have })?;
        *input = rest;
        Ok(Self(*head))
    }
}

/// An array in a tail, checked to be complete and decoded element by element.
pub struct Array<'a, T> {
    bytes: &'a [u8],
    of: PhantomData<T>,
}

// Derived, these would ask the same of `T`, of which there is none.
impl<T> Clone for Array<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Array<'_, T> {}

impl<T> PartialEq for Array<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl<T: Wire + fmt::Debug> fmt::Debug for Array<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, T: Wire> Array<'a, T> {
    /// Splits an array of `count` values from the front of `tail`.
    ///
    /// # Errors
    /// [`WireError::Short`] when the tail does not hold that many; nothing is allocated by what a count claims.
    pub fn take(tail: &mut &'a [u8], count: u64) -> Result<Self, WireError> {
        let need = count.saturating_mul(T::SIZE as u64);
        let short = WireError::Short { need, have: tail.len() as u64 };
        let bytes = split(tail, usize::try_from(need).map_err(|_| short)?)?;
        Ok(Self { bytes, of: PhantomData })
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.bytes.len().checked_div(T::SIZE).unwrap_or(0)
    }

    /// Returns whether the array is empty.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Decodes the value at `index`; returns `None` if the array is shorter.
    pub fn at(&self, index: usize) -> Option<T> {
        let mut bytes = self.bytes.get(index.checked_mul(T::SIZE)?..)?;
        T::take(&mut bytes).ok()
    }

    /// Iterates over the values in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = T> + use<'a, T> {
        let whole = *self;
        whole.bytes.chunks_exact(T::SIZE.max(1)).map(|mut item| T::take(&mut item).unwrap_or(T::ZERO))
    }
}
