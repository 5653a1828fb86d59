//! Which arguments of calls a trace shows: numbers, sizes and handles. What points into the program's memory says nothing to people.

use hipr_abi::*;

use crate::convert::{Chars, Context, Event, Function, In, Module, Out, Ptr, Str, Stream};

/// Most arguments of a call that are shown.
pub(crate) const SHOWN_MAX: usize = 4;

/// The type of an argument.
pub(crate) trait Shown {
    /// Whether arguments of this type are shown.
    const IS_SHOWN: bool = false;

    /// Returns the number that is shown.
    fn number(&self) -> u64 {
        0
    }
}

/// Returns the numbers of those arguments that are shown, as many as there is room for.
#[inline]
pub(crate) fn shown<const N: usize>(numbers: [Option<u64>; N]) -> [u64; SHOWN_MAX] {
    let mut shown = [0; SHOWN_MAX];
    shown.iter_mut().zip(numbers.into_iter().flatten()).for_each(|(place, number)| *place = number);
    shown
}

/// Returns the number of an argument, if it is shown.
#[inline]
pub(crate) fn number<T: Shown>(argument: &T) -> Option<u64> {
    T::IS_SHOWN.then(|| argument.number())
}

macro_rules! shown {
    ($($ty:ty: |$value:ident| $number:expr;)*) => {$(
        impl Shown for $ty {
            const IS_SHOWN: bool = true;

            #[inline]
            fn number(&self) -> u64 {
                let $value = *self;
                $number
            }
        }
    )*};
}

shown! {
    usize: |value| value as u64;
    u64: |value| value;
    u32: |value| value.into();
    u16: |value| value.into();
    u8: |value| value.into();
    // Negative ones are devices that mean something else.
    i32: |value| value as u64;
    Stream: |stream| stream.0 as u64;
    Event: |event| event.0 as u64;
    // What people reckon with are blocks, and threads of a block.
    dim3: |size| u64::from(size.x) * u64::from(size.y) * u64::from(size.z);
}

macro_rules! not_shown {
    ($($ty:ty),* $(,)?) => { $(impl Shown for $ty {})* };
}

not_shown!(
    Ptr,
    Str,
    Chars,
    Function,
    Module,
    Context,
    f32,
    hipChannelFormatDesc,
    hipExtent,
    hipHostFn_t,
    hipIpcEventHandle_t,
    hipIpcMemHandle_t,
    hipMemLocation,
    hipPitchedPtr,
    hipStreamCallback_t,
);

impl<T> Shown for Out<T> {}
impl<T> Shown for In<T> {}
