//! Which arguments of calls a trace shows: numbers, sizes and handles. What points into the program's memory says nothing to people.

use hipr_abi::*;

use crate::convert::{Chars, Context, Event, Function, In, Module, Out, Ptr, Str, Stream};

/// Most arguments of a call that are shown.
pub(crate) const SHOWN_MAX: usize = 4;

/// What the number of an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShownAs {
    /// A number, a size.
    Number,
    /// The handle of a stream.
    Stream,
    /// The handle of an event.
    Event,
}

/// The type of an argument.
pub(crate) trait Shown {
    /// How arguments of this type are shown; `None` if they are not.
    const AS: Option<ShownAs> = None;

    /// Returns the number that is shown.
    fn number(&self) -> u64 {
        0
    }
}

/// Returns the numbers of those arguments that are shown, as many as there is room for.
#[inline]
pub(crate) fn shown_of<const N: usize>(numbers: [Option<u64>; N]) -> [u64; SHOWN_MAX] {
    let mut shown = [0; SHOWN_MAX];
    shown.iter_mut().zip(numbers.into_iter().flatten()).for_each(|(place, number)| *place = number);
    shown
}

/// Returns the number of an argument, if it is shown.
#[inline]
pub(crate) fn number<T: Shown>(argument: &T) -> Option<u64> {
    T::AS.map(|_| argument.number())
}

macro_rules! shown {
    ($($ty:ty: $what:ident |$value:ident| $number:expr;)*) => {$(
        impl Shown for $ty {
            const AS: Option<ShownAs> = Some(ShownAs::$what);

            #[inline]
            fn number(&self) -> u64 {
                let $value = *self;
                $number
            }
        }
    )*};
}

shown! {
    usize: Number |value| value as u64;
    u64: Number |value| value;
    u32: Number |value| value.into();
    u16: Number |value| value.into();
    u8: Number |value| value.into();
    // Negative ones are devices that mean something else.
    i32: Number |value| value as u64;
    Stream: Stream |stream| stream.0 as u64;
    Event: Event |event| event.0 as u64;
    // What people reckon with are blocks, and threads of a block.
    dim3: Number |size| u64::from(size.x) * u64::from(size.y) * u64::from(size.z);
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
