//! Handles: which fields hold them, which requests make one, and the names that clients give.

use super::Opcode;
use crate::wire::Text;

/// The kind of object that a handle stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Handle {
    /// A stream.
    Stream,
    /// An event.
    Event,
    /// A memory pool.
    Pool,
    /// A module.
    Module,
    /// A kernel of a module.
    Function,
    /// A graph.
    Graph,
    /// An instantiated graph.
    Exec,
}

impl Handle {
    /// Every kind.
    pub const ALL: [Self; 7] =
        [Self::Stream, Self::Event, Self::Pool, Self::Module, Self::Function, Self::Graph, Self::Exec];

    /// Returns the kind of object whose handle a field with this name holds, in every request and every reply; `None` if it
    /// holds none.
    pub const fn of_field(name: &str) -> Option<Self> {
        Some(match name.as_bytes() {
            b"stream" => Self::Stream,
            b"event" | b"start_event" | b"stop_event" => Self::Event,
            b"mem_pool" => Self::Pool,
            b"module" => Self::Module,
            b"function" | b"func" => Self::Function,
            b"graph" | b"original_graph" | b"cloned_graph" | b"child" => Self::Graph,
            b"graph_exec" => Self::Exec,
            _ => return None,
        })
    }
}

impl Opcode {
    /// Returns the kind of object that a request of this operation makes, if it makes exactly one that a client can name
    /// (`NAME`).
    pub const fn makes(self) -> Option<Handle> {
        Some(match self {
            Self::STREAM_CREATE | Self::STREAM_CREATE_WITH_FLAGS | Self::STREAM_CREATE_WITH_PRIORITY => {
                Handle::Stream
            }
            Self::EVENT_CREATE | Self::EVENT_CREATE_WITH_FLAGS | Self::IPC_OPEN_EVENT_HANDLE => Handle::Event,
            Self::MEM_POOL_CREATE => Handle::Pool,
            Self::MODULE_LOAD_DATA | Self::MODULE_LOAD_DATA_EX | Self::MODULE_LOAD_PACKED => Handle::Module,
            Self::MODULE_GET_FUNCTION => Handle::Function,
            Self::GRAPH_CREATE | Self::GRAPH_CLONE | Self::STREAM_END_CAPTURE => Handle::Graph,
            Self::GRAPH_INSTANTIATE => Handle::Exec,
            _ => return None,
        })
    }
}

/// The handles in the fixed part of a request or of a reply; the table of operations implements it, by the names of fields.
pub trait Handles {
    /// Calls `each` with every handle and its kind.
    fn handles(&mut self, each: impl FnMut(Handle, &mut u64));

    /// Returns the first handle; 0 if there is none.
    fn first_handle(mut self) -> u64
    where
        Self: Sized,
    {
        let mut first = None;
        self.handles(|_, handle| {
            first.get_or_insert(*handle);
        });
        first.unwrap_or(0)
    }
}

impl Handles for () {
    fn handles(&mut self, _each: impl FnMut(Handle, &mut u64)) {}
}

/// The type of a field.
pub(crate) trait FieldType {
    /// Returns the number in which a handle can be; `None` for all other types.
    #[inline(always)]
    fn number(&mut self) -> Option<&mut u64> {
        None
    }
}

impl FieldType for u64 {
    #[inline(always)]
    fn number(&mut self) -> Option<&mut u64> {
        Some(self)
    }
}

impl FieldType for u16 {}
impl FieldType for u32 {}
impl FieldType for i32 {}
impl FieldType for f32 {}
impl<T, const N: usize> FieldType for [T; N] {}
impl<const N: usize> FieldType for Text<N> {}

/// A name that a client gives to what it makes (`NAME`), and that is used like a handle from then on: a number from 2^62 to
/// 2^63 - 1. Its low [`PLACE_BITS`](Self::PLACE_BITS) bits are its place among the names of the session, the bits above them
/// tell it from the earlier names of that place, which were smaller.
///
/// ```
/// use hipr_proto::op::ClientName;
///
/// let name = ClientName::new(7, 3).expect("a small turn and a small place");
/// assert_eq!((name.number(), name.turn(), name.place()), (1 << 62 | 7 << 24 | 3, 7, 3));
/// assert_eq!(ClientName::of(name.number()), Some(name));
/// assert_eq!(ClientName::of(0x7f00_0000_1000), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientName(u64);

impl ClientName {
    /// The smallest name.
    pub const FIRST: u64 = 1 << 62;
    /// Number of bits for the place.
    pub const PLACE_BITS: u32 = 24;
    /// Number of places.
    pub const PLACES: usize = 1 << Self::PLACE_BITS;
    /// Number of names that one place can have, one after another.
    pub const TURNS: u64 = Self::FIRST >> Self::PLACE_BITS;

    /// Returns the name of the given turn at a place; `None` if there is none, because one of them is too large.
    pub const fn new(turn: u64, place: usize) -> Option<Self> {
        if turn < Self::TURNS && place < Self::PLACES {
            Some(Self(Self::FIRST | turn << Self::PLACE_BITS | place as u64))
        } else {
            None
        }
    }

    /// Returns the name with this number; `None` if the number is not one of a name.
    pub const fn of(number: u64) -> Option<Self> {
        if number >> 62 == 1 { Some(Self(number)) } else { None }
    }

    /// Returns the number.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Returns the place.
    pub const fn place(self) -> usize {
        Self::place_of(self.0)
    }

    /// Returns the turn: its number among the names that its place can have.
    pub const fn turn(self) -> u64 {
        (self.0 - Self::FIRST) >> Self::PLACE_BITS
    }

    /// Returns the place in a number that is built like a name.
    pub const fn place_of(number: u64) -> usize {
        number as usize & (Self::PLACES - 1)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::op::{ForOp, LaunchKernel, MemcpyAsync, OPS, Op, with_op};
    use crate::wire::Wire;

    /// Returns the kinds of the handles in the request and in the reply.
    struct Kinds;

    impl ForOp for Kinds {
        type Out = [Vec<Handle>; 2];

        fn call<O: Op>(self) -> Self::Out {
            let (mut request, mut reply) = (Vec::new(), Vec::new());
            let mut zero = O::ZERO;
            zero.handles(|kind, _| request.push(kind));
            let mut zero = <O::Reply as Wire>::ZERO;
            zero.handles(|kind, _| reply.push(kind));
            [request, reply]
        }
    }

    #[test]
    fn what_makes_one_object_replies_with_its_handle() {
        for info in OPS {
            let kinds = with_op(info.code, Kinds);
            let [_, reply] = kinds.expect("an operation of the table");
            if let Some(kind) = info.code.makes() {
                assert_eq!(reply, [kind], "{}", info.name);
                assert_eq!(
                    info.reply.fields.first().and_then(|field| Handle::of_field(field.name)),
                    Some(kind)
                );
            }
        }
        let made = |kind| OPS.iter().any(|info| info.code.makes() == Some(kind));
        assert!(Handle::ALL.into_iter().all(made));
    }

    #[test]
    fn handles_are_found_by_the_names_of_fields() {
        let mut launch = LaunchKernel { function: 1, stream: 2, start_event: 3, stop_event: 4, ..Wire::ZERO };
        let mut seen = Vec::new();
        launch.handles(|kind, handle| {
            seen.push((kind, *handle));
            *handle += 10;
        });
        let (function, event) = (Handle::Function, Handle::Event);
        assert_eq!(seen, [(function, 1), (Handle::Stream, 2), (event, 3), (event, 4)]);
        assert_eq!((launch.function, launch.stop_event, launch.grid_dim_x), (11, 14, 0));
        let mut copy = MemcpyAsync(Wire::ZERO);
        copy.handles(|kind, handle| {
            assert_eq!(kind, Handle::Stream);
            *handle = 5;
        });
        assert_eq!((copy.0.stream, copy.first_handle()), (5, 5));
    }

    #[test]
    fn names_have_a_range() {
        assert_eq!(ClientName::new(0, 0).map(ClientName::number), Some(1 << 62));
        let last = ClientName::new(ClientName::TURNS - 1, ClientName::PLACES - 1);
        assert_eq!(last.map(ClientName::number), Some((1 << 63) - 1));
        assert_eq!(ClientName::new(ClientName::TURNS, 0), None);
        assert_eq!(ClientName::new(0, ClientName::PLACES), None);
        for number in [0, (1 << 62) - 1, 1 << 63, u64::MAX] {
            assert_eq!(ClientName::of(number), None);
        }
    }
}
