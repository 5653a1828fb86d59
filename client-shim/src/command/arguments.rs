//! Arguments of a kernel launch: as C passes them, as the wire carries them, and as a graph node returns them.

use std::sync::atomic::{AtomicU64, AtomicUsize};

use hipr_abi::{HIP_LAUNCH_PARAM_BUFFER_POINTER, HIP_LAUNCH_PARAM_BUFFER_SIZE, HIP_LAUNCH_PARAM_END};
use hipr_proto::op::{LaunchArgs, Param};
use hipr_proto::{HipError, HipResult, Wire};
use smallvec::SmallVec;

use super::function::Function;
use crate::convert::{In, Ptr};

/// Largest number of entries of `extra` that are read; two pairs and the end mark suffice.
const EXTRA_MAX: usize = 16;

/// The arguments of a launch as C passes them.
#[derive(Clone, Copy, Debug)]
pub enum PassedArguments {
    /// An array with a pointer to each argument.
    Each(In<Ptr>),
    /// Address and size of a buffer that holds all arguments in the kernel's layout.
    Buffer(Ptr, usize),
}

impl PassedArguments {
    /// Returns the arguments that `kernelParams` or `extra` passes; fails unless one of the two is null.
    pub fn of(params: In<Ptr>, extra: In<Ptr>) -> HipResult<Self> {
        if extra.is_null() {
            return Ok(Self::Each(params));
        }
        if !params.is_null() {
            return Err(HipError::INVALID_VALUE);
        }
        let (mut buffer, mut size) = (Ptr::NULL, None);
        let mut at = 0;
        while at < EXTRA_MAX {
            let value = || extra.at(at + 1).ok_or(HipError::INVALID_VALUE);
            match extra.at(at).map(|key| key.0) {
                Some(HIP_LAUNCH_PARAM_BUFFER_POINTER) => buffer = value()?,
                Some(HIP_LAUNCH_PARAM_BUFFER_SIZE) => size = In::<usize>::at_address(value()?).value(),
                Some(HIP_LAUNCH_PARAM_END) => {
                    let size = size.ok_or(HipError::INVALID_VALUE)?;
                    return if size == 0 {
                        Ok(Self::Buffer(buffer, 0))
                    } else {
                        Ok(Self::Buffer(buffer.check()?, size))
                    };
                }
                _ => return Err(HipError::INVALID_VALUE),
            }
            at += 2;
        }
        Err(HipError::INVALID_VALUE)
    }

    /// Reads the arguments of a kernel in the layout that its metadata describes.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: an argument is missing, or there are too many bytes; `hipErrorInvalidImage`: the layout is unknown.
    pub fn encode(self, function: &Function) -> HipResult<Arguments> {
        match self {
            Self::Each(pointers) => {
                let params = function.params()?;
                let end = |param: &Param| param.offset as usize + param.size as usize;
                let Some(len) = params.iter().map(end).max() else { return Ok(Arguments::default()) };
                let mut encoded = Arguments::new(len, false)?;
                let data = encoded.data();
                for (index, param) in params.iter().enumerate() {
                    let argument = pointers.at(index).ok_or(HipError::INVALID_VALUE)?.check()?;
                    // SAFETY: HIP API: kernelParams[i] points to argument i, which has the size that the kernel
                    // was compiled with.
                    let bytes = unsafe { argument.host_bytes(param.size as usize) };
                    if let Some(place) = data.get_mut(param.offset as usize..end(param)) {
                        place.copy_from_slice(bytes);
                    }
                }
                Ok(encoded)
            }
            Self::Buffer(buffer, len) => {
                let mut encoded = Arguments::new(len, true)?;
                // SAFETY: HIP API: the buffer has the size that stands beside it.
                encoded.data().copy_from_slice(unsafe { buffer.host_bytes(len) });
                Ok(encoded)
            }
        }
    }
}

/// The arguments of a launch as the wire carries them (HIPR 1.0, Kernel Launch): one buffer in the kernel's layout, also if the program has passed
/// a pointer to each argument. So a launch has one descriptor, and not one for each argument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    /// The buffer's descriptor, followed by the buffer; empty if there are no arguments. So many bytes need no allocation.
    pub tail: SmallVec<[u8; 256]>,
    /// Whether the program has passed a buffer.
    is_buffer: bool,
}

impl Arguments {
    /// Creates arguments of `len` zeros.
    fn new(len: usize, is_buffer: bool) -> HipResult<Self> {
        let size = u32::try_from(len).map_err(|_| HipError::INVALID_VALUE)?;
        let mut tail = SmallVec::new();
        LaunchArgs::put(&[Param { offset: 0, size }], &[], &mut tail);
        tail.resize(Param::SIZE + len, 0);
        Ok(Self { tail, is_buffer })
    }

    /// Returns the number of descriptors.
    pub fn num_args(&self) -> u32 {
        u32::from(!self.tail.is_empty())
    }

    /// Returns the launch's flags, which say that there is one buffer.
    pub fn launch_flags(&self) -> u32 {
        self.num_args()
    }

    /// Returns the argument data in the kernel's layout.
    pub fn data(&mut self) -> &mut [u8] {
        self.tail.get_mut(Param::SIZE..).unwrap_or_default()
    }

    /// Returns memory with the arguments as the program would pass them to a function whose parameters are `params`.
    pub(super) fn for_node(&self, params: &[Param]) -> NodeArguments {
        NodeArguments::new(params, self.tail.get(Param::SIZE..).unwrap_or_default(), self.is_buffer)
    }
}

/// Sixteen bytes, the largest alignment that an argument has.
#[repr(align(16))]
#[derive(Debug, Default)]
struct Chunk(#[expect(dead_code, reason = "the program reads it, by its address")] [AtomicU64; 2]);

/// Memory with a graph node's arguments, which the program may read, and in which it may change the pointers, as long as the
/// node has these arguments. Atomics, as it may change it at any time.
#[derive(Debug)]
pub(crate) struct NodeArguments {
    _arguments: Box<[Chunk]>,
    /// `kernelParams`, or `extra` if all are in one buffer.
    pointers: Box<[AtomicUsize]>,
    /// The size that `extra` points to.
    _len_bytes: Box<AtomicUsize>,
    is_buffer: bool,
}

impl NodeArguments {
    /// Creates the arguments in `data` with one pointer to each offset of `params`, or as one buffer if `is_buffer`.
    fn new(params: &[Param], data: &[u8], is_buffer: bool) -> Self {
        let chunks = data.chunks(size_of::<Chunk>()).map(|bytes| {
            let word = |part: &[u8]| {
                let mut word = [0; 8];
                word[..part.len()].copy_from_slice(part);
                AtomicU64::new(u64::from_ne_bytes(word))
            };
            let (low, high) = bytes.split_at(bytes.len().min(8));
            Chunk([word(low), word(high)])
        });
        let arguments: Box<[Chunk]> = chunks.collect();
        let len_bytes = Box::new(AtomicUsize::new(data.len()));
        let first = arguments.as_ptr().expose_provenance();
        let pointers: Box<[usize]> = if is_buffer {
            let len_at = (&raw const *len_bytes).expose_provenance();
            Box::new([
                HIP_LAUNCH_PARAM_BUFFER_POINTER,
                first,
                HIP_LAUNCH_PARAM_BUFFER_SIZE,
                len_at,
                HIP_LAUNCH_PARAM_END,
            ])
        } else {
            params.iter().map(|param| first + param.offset as usize).collect()
        };
        let pointers = pointers.into_iter().map(AtomicUsize::new).collect();
        Self { _arguments: arguments, pointers, _len_bytes: len_bytes, is_buffer }
    }

    fn pointers(&self) -> Ptr {
        if self.pointers.is_empty() { Ptr::NULL } else { Ptr(self.pointers.as_ptr().expose_provenance()) }
    }

    /// Returns `kernelParams`; null if the arguments are in one buffer.
    pub(super) fn kernel_params(&self) -> Ptr {
        if self.is_buffer { Ptr::NULL } else { self.pointers() }
    }

    /// Returns `extra`; null unless the arguments are in one buffer.
    pub(super) fn extra(&self) -> Ptr {
        if self.is_buffer { self.pointers() } else { Ptr::NULL }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::Module;

    fn function(params: &[(u32, u32)]) -> Function {
        let params = params.iter().map(|(offset, size)| Param { offset: *offset, size: *size }).collect();
        Function::new(1, "k".to_owned(), Module(1), Some(params), None)
    }

    fn ptr<T>(value: &T) -> Ptr {
        Ptr(core::ptr::from_ref(value).expose_provenance())
    }

    #[test]
    fn arguments_lie_where_the_metadata_says() {
        let (a, b) = (7u8, 0x0102_0304_0506_0708u64);
        let pointers = [ptr(&a), ptr(&b)];
        let arguments = PassedArguments::of(In::from_slice(&pointers), In::NULL).expect("arguments");
        let mut encoded = arguments.encode(&function(&[(0, 1), (8, 8)])).expect("encoded");
        assert_eq!(encoded.tail[..8], [0, 0, 0, 0, 16, 0, 0, 0], "one buffer");
        assert_eq!(encoded.data(), [7, 0, 0, 0, 0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!((encoded.num_args(), encoded.launch_flags()), (1, 1));
    }

    #[test]
    fn a_buffer_is_sent_as_it_is() {
        let (buffer, size) = ([1u8, 2, 3, 4], 4usize);
        let extra = [
            Ptr(HIP_LAUNCH_PARAM_BUFFER_POINTER),
            ptr(&buffer),
            Ptr(HIP_LAUNCH_PARAM_BUFFER_SIZE),
            ptr(&size),
            Ptr(HIP_LAUNCH_PARAM_END),
        ];
        let arguments = PassedArguments::of(In::NULL, In::from_slice(&extra)).expect("arguments");
        let encoded = arguments.encode(&function(&[(0, 4)])).expect("encoded");
        assert_eq!(encoded.tail[..], [0, 0, 0, 0, 4, 0, 0, 0, 1, 2, 3, 4]);
        assert_eq!((encoded.num_args(), encoded.launch_flags()), (1, 1));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let one = [Ptr(1)];
        let refused = |params, extra| PassedArguments::of(params, extra).err();
        assert_eq!(refused(In::from_slice(&one), In::from_slice(&one)), Some(HipError::INVALID_VALUE));
        assert_eq!(refused(In::NULL, In::from_slice(&[Ptr(9), Ptr(0)])), Some(HipError::INVALID_VALUE));
        assert_eq!(
            refused(In::NULL, In::from_slice(&[Ptr(HIP_LAUNCH_PARAM_END)])),
            Some(HipError::INVALID_VALUE)
        );
        let none = PassedArguments::of(In::NULL, In::NULL).expect("no arguments");
        assert_eq!(none.encode(&function(&[(0, 4)])).err(), Some(HipError::INVALID_VALUE));
        let encoded = none.encode(&function(&[])).expect("no arguments");
        assert_eq!((encoded.num_args(), encoded.launch_flags(), encoded.tail.len()), (0, 0, 0));
    }

    #[test]
    fn without_a_layout_only_a_buffer_is_read() {
        let unknown = Function::new(1, "k".to_owned(), Module(1), None, None);
        let one = [Ptr(1)];
        let each = PassedArguments::of(In::from_slice(&one), In::NULL).expect("arguments");
        assert_eq!(each.encode(&unknown).err(), Some(HipError::INVALID_IMAGE));
        let buffer = [1u8, 2];
        let mut encoded = PassedArguments::Buffer(ptr(&buffer), 2).encode(&unknown).expect("encoded");
        assert_eq!(encoded.data(), [1, 2]);
    }
}
