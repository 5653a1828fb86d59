//! Requests to a worker with the scripted device, and their encoding.

use std::fmt;

use hipr_io::Packer;
use hipr_proto::op::{self, LaunchArgs, Param, kind, purpose};
use hipr_proto::{Features, Op, Opcode, Wire};
use hipr_worker::device::script::Fault;

use crate::choices::noise;

/// The name of the only kernel in the device's modules.
pub const KERNEL: &str = "kernel";
/// Its parameters, as offset and size: one of eight bytes.
pub const KERNEL_PARAMS: [(u32, u32); 1] = [(0, 8)];
/// Size of its kernarg segment in bytes.
pub const KERNARG_BYTES: u32 = 8;

/// The names of variables that clients ask for, and their sizes in bytes; the device's modules do not have the last one.
pub const VARIABLES: [(&str, u64); 3] = [("small", 16), ("large", 300), ("missing", 0)];

/// HIP's number of this type of memory.
const DEVICE_MEMORY: u32 = 2;

/// The features that clients offer who place memory, and take no notifications.
pub const PLACING: Features = Features::NAMES.union(Features::PLACES).union(Features::PACKED);

/// The features that clients offer who take notifications. PLACES is not among them: with both, the worker asks for unused leases when memory is
/// short, which the model does not do.
pub const TOLD: Features = Features::NAMES
    .union(Features::PACKED)
    .union(Features::NOTIFICATIONS)
    .union(Features::VARIABLES)
    .union(Features::TIMES);

/// A request, and the fault that happens when it is executed.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The request.
    pub request: Request,
    /// Whether it is answered.
    pub loud: bool,
    /// The fault of the device's first call for it.
    pub fault: Option<Fault>,
}

/// A request. The scripted device's addresses and handles are known in advance.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// `INIT`.
    Init,
    /// `PING`.
    Ping,
    /// `SHUTDOWN`, the last request of a session.
    Shutdown,
    /// `DEVICE_SYNCHRONIZE`.
    Synchronize,
    /// `STREAM_SYNCHRONIZE` of a stream that does not belong to the client.
    ForeignStream,
    /// `OFFER` of these features.
    Offer(Features),
    /// `NAME`.
    Name(u64),
    /// `STREAM_CREATE` with these flags.
    StreamCreate(u32),
    /// `STREAM_GET_FLAGS` of a stream.
    StreamFlags(u64),
    /// `STREAM_DESTROY` of a stream.
    StreamDestroy(u64),
    /// `GRAPH_CREATE`.
    GraphCreate,
    /// `MALLOC` of this many bytes.
    Malloc(u64),
    /// `FREE` of an address.
    Free(u64),
    /// `FREE_ASYNC` of an address, on the null stream.
    FreeAsync(u64),
    /// `MEM_LEASE` with this many bytes wanted.
    Lease(u64),
    /// `MALLOC_AT` of device memory: address and size.
    MallocAt(u64, u64),
    /// `MEM_RETURN`: bytes and allocations.
    Return(u64, u64),
    /// `MEMSET`: address, length in bytes, value.
    Fill(u64, u64, u8),
    /// `MEMCPY` to the device: address and number of bytes.
    Up(u64, usize),
    /// `MEMCPY` from the device: address and number of bytes.
    Down(u64, u64),
    /// `PUT_PACKED`: address, number of bytes, and whether the frame is damaged, if they are packed.
    UpPacked(u64, usize, bool),
    /// `GET_PACKED`: address and number of bytes.
    DownPacked(u64, u64),
    /// `MODULE_LOAD_DATA` of this many bytes.
    Load(usize),
    /// `MODULE_UNLOAD` of a module.
    Unload(u64),
    /// `MODULE_VARIABLES`: module, number, and which of [`VARIABLES`].
    Variables(u64, u64, Vec<usize>),
    /// `VARIABLE_PUT`: module, number of the variable, offset and number of bytes.
    Put(u64, u32, u64, usize),
    /// `EVENT_TIMES`: number, and of how many pairs of events that there are not.
    Times(u64, u32),
    /// `MODULE_GET_FUNCTION`: module and name.
    Function(u64, String),
    /// `LAUNCH_KERNEL`: function and argument.
    Launch(u64, u64),
    /// `MODULE_GET_FUNCTION` with a name of this many bytes, more than a small tail may have.
    LongName(usize),
    /// An unknown operation with a payload of this many bytes.
    Unknown(usize),
    /// A `MALLOC` with an incomplete fixed part.
    Short,
}

/// The encoded request without its header.
#[derive(Clone, Debug, PartialEq)]
pub struct Encoded {
    /// The operation.
    pub op: Opcode,
    /// The fixed part and a small tail.
    pub fixed: Vec<u8>,
    /// The bulk bytes.
    pub inline: Option<Vec<u8>>,
}

impl Request {
    /// Returns the operation.
    pub fn op(&self) -> Opcode {
        match self {
            Self::Init => Opcode::INIT,
            Self::Ping => Opcode::PING,
            Self::Shutdown => Opcode::SHUTDOWN,
            Self::Synchronize => Opcode::DEVICE_SYNCHRONIZE,
            Self::ForeignStream => Opcode::STREAM_SYNCHRONIZE,
            Self::Offer(_) => Opcode::OFFER,
            Self::Name(_) => Opcode::NAME,
            Self::StreamCreate(_) => Opcode::STREAM_CREATE,
            Self::StreamFlags(_) => Opcode::STREAM_GET_FLAGS,
            Self::GraphCreate => Opcode::GRAPH_CREATE,
            Self::StreamDestroy(_) => Opcode::STREAM_DESTROY,
            Self::Malloc(_) | Self::Short => Opcode::MALLOC,
            Self::Free(_) => Opcode::FREE,
            Self::FreeAsync(_) => Opcode::FREE_ASYNC,
            Self::Lease(_) => Opcode::MEM_LEASE,
            Self::MallocAt(..) => Opcode::MALLOC_AT,
            Self::Return(..) => Opcode::MEM_RETURN,
            Self::Fill(..) => Opcode::MEMSET,
            Self::Up(..) | Self::Down(..) => Opcode::MEMCPY,
            Self::UpPacked(..) => Opcode::PUT_PACKED,
            Self::DownPacked(..) => Opcode::GET_PACKED,
            Self::Load(_) => Opcode::MODULE_LOAD_DATA,
            Self::Unload(_) => Opcode::MODULE_UNLOAD,
            Self::Variables(..) => Opcode::MODULE_VARIABLES,
            Self::Put(..) => Opcode::VARIABLE_PUT,
            Self::Times(..) => Opcode::EVENT_TIMES,
            Self::Function(..) | Self::LongName(_) => Opcode::MODULE_GET_FUNCTION,
            Self::Launch(..) => Opcode::LAUNCH_KERNEL,
            Self::Unknown(_) => Opcode(0x0fff),
        }
    }

    /// Returns the number of bulk bytes in the request and in a successful reply.
    pub fn bulk_bytes(&self) -> usize {
        match self {
            Self::UpPacked(_, len, _) | Self::Put(_, _, _, len) => *len,
            Self::Up(_, len) | Self::Load(len) | Self::LongName(len) | Self::Unknown(len) => *len,
            Self::Down(_, len) | Self::DownPacked(_, len) => *len as usize,
            _ => 0,
        }
    }

    /// Returns the bytes of a copy to the device.
    pub fn up_bytes(dst: u64, len: usize) -> Vec<u8> {
        let mut bytes = noise(len);
        // So that two copies differ.
        bytes.iter_mut().zip(dst.to_le_bytes()).for_each(|(byte, mark)| *byte ^= mark);
        bytes
    }

    /// Returns the bytes of a packed copy to the device, and the frame, if packing them pays.
    pub fn packed_bytes(dst: u64, len: usize) -> (Vec<u8>, Option<Vec<u8>>) {
        let bytes: Vec<u8> = (0..len).map(|at| (at / 48) as u8 ^ dst.to_le_bytes()[at % 8]).collect();
        let mut frame = Vec::new();
        let pays = Packer::new().is_ok_and(|mut packer| packer.pack(&bytes, &mut frame));
        (bytes, pays.then_some(frame))
    }

    /// Encodes the request.
    pub fn encode(&self) -> Encoded {
        match self {
            Self::Init => fixed(&op::Init {}),
            Self::Ping => fixed(&op::Ping {}),
            Self::Shutdown => fixed(&op::Shutdown {}),
            Self::Synchronize => fixed(&op::DeviceSynchronize {}),
            Self::ForeignStream => fixed(&op::StreamSynchronize { stream: 0xdead }),
            Self::Offer(features) => fixed(&op::Offer { features: features.bits(), part: 0 }),
            Self::Name(name) => fixed(&op::Name { name: *name }),
            Self::StreamCreate(flags) => fixed(&op::StreamCreate { flags: *flags, priority: 0 }),
            Self::GraphCreate => fixed(&op::GraphCreate { flags: 0 }),
            Self::StreamFlags(stream) => fixed(&op::StreamGetFlags { stream: *stream }),
            Self::StreamDestroy(stream) => fixed(&op::StreamDestroy { stream: *stream }),
            Self::Malloc(size) => fixed(&op::Malloc { size: *size, flags: 0 }),
            Self::Free(device_ptr) => fixed(&op::Free { device_ptr: *device_ptr }),
            Self::FreeAsync(device_ptr) => fixed(&op::FreeAsync { device_ptr: *device_ptr, stream: 0 }),
            Self::Lease(want_bytes) => fixed(&op::MemLease { want_bytes: *want_bytes }),
            Self::MallocAt(device_ptr, size) => {
                fixed(&op::MallocAt { device_ptr: *device_ptr, size: *size, kind: DEVICE_MEMORY, flags: 0 })
            }
            Self::Return(bytes, allocations) => {
                fixed(&op::MemReturn { bytes: *bytes, allocations: *allocations, recall: 0 })
            }
            Self::Fill(dst, size, value) => {
                fixed(&op::Memset { dst: *dst, value: i32::from(*value), size: *size, stream: 0 })
            }
            Self::Up(dst, len) => {
                let size = *len as u64;
                let copy = op::Memcpy { dst: *dst, size, kind: kind::HOST_TO_DEVICE, ..Wire::ZERO };
                bulk(&copy, Self::up_bytes(*dst, *len))
            }
            Self::Down(src, size) => {
                fixed(&op::Memcpy { src: *src, size: *size, kind: kind::DEVICE_TO_HOST, ..Wire::ZERO })
            }
            Self::UpPacked(dst, len, is_damaged) => {
                let (bytes, frame) = Self::packed_bytes(*dst, *len);
                let mut sent = frame.unwrap_or(bytes);
                let (size, packed) = (*len as u64, sent.len() as u64);
                if *is_damaged && packed < size {
                    sent[0] ^= 1;
                }
                let purpose = purpose::WRITTEN;
                let put = op::PutPacked { dst: *dst, size, length: size, packed, purpose, ..Wire::ZERO };
                bulk(&put, sent)
            }
            Self::DownPacked(src, size) => {
                fixed(&op::GetPacked { src: *src, size: *size, length: *size, ..Wire::ZERO })
            }
            Self::Load(len) => bulk(&op::ModuleLoadData { data_size: *len as u64 }, noise(*len)),
            Self::Unload(module) => fixed(&op::ModuleUnload { module: *module }),
            Self::Variables(module, number, which) => {
                let mut tail = Vec::new();
                let names = which.iter().map(|variable| VARIABLES[*variable].0);
                let count = op::put_variable_names(names, &mut tail) as u32;
                let names_length = tail.len() as u32;
                with_tail(
                    &op::ModuleVariables { module: *module, number: *number, count, names_length },
                    &tail,
                )
            }
            Self::Put(module, variable, offset, len) => {
                let (module, variable, offset, length) = (*module, *variable, *offset, *len as u64);
                let put = op::VariablePut { module, variable, waits: 0, offset, length, stream: 0 };
                bulk(&put, Self::up_bytes(offset, *len))
            }
            Self::Times(number, count) => {
                let pair = [0xbad_u64, 0xbad].map(u64::to_le_bytes).concat();
                with_tail(
                    &op::EventTimes { number: *number, count: *count, reserved: 0 },
                    &pair.repeat(*count as usize),
                )
            }
            Self::Function(module, name) => {
                let mut tail = name.as_bytes().to_vec();
                tail.push(0);
                with_tail(&op::ModuleGetFunction { module: *module }, &tail)
            }
            Self::LongName(len) => with_tail(&op::ModuleGetFunction { module: 1 }, &vec![b'n'; *len]),
            Self::Launch(function, argument) => {
                let mut tail = Vec::new();
                let params = KERNEL_PARAMS.map(|(offset, size)| Param { offset, size });
                LaunchArgs::put(&params, &argument.to_le_bytes(), &mut tail);
                with_tail(&launch(*function), &tail)
            }
            Self::Unknown(len) => Encoded { op: self.op(), fixed: noise(*len), inline: None },
            Self::Short => Encoded { op: self.op(), fixed: vec![0; 11], inline: None },
        }
    }
}

fn launch(function: u64) -> op::LaunchKernel {
    op::LaunchKernel {
        function,
        grid_dim_x: 1,
        grid_dim_y: 1,
        grid_dim_z: 1,
        block_dim_x: 64,
        block_dim_y: 1,
        block_dim_z: 1,
        num_args: 1,
        ..Wire::ZERO
    }
}

fn fixed<O: Op>(request: &O) -> Encoded {
    with_tail(request, &[])
}

fn with_tail<O: Op>(request: &O, tail: &[u8]) -> Encoded {
    let mut fixed = Vec::new();
    request.put(&mut fixed);
    fixed.extend_from_slice(tail);
    Encoded { op: O::OPCODE, fixed, inline: None }
}

fn bulk<O: Op>(request: &O, bytes: Vec<u8>) -> Encoded {
    Encoded { inline: Some(bytes), ..fixed(request) }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x?}{}", self.request, if self.loud { "" } else { ", not answered" })?;
        match self.fault {
            Some(fault) => write!(f, ", {fault:?}"),
            None => Ok(()),
        }
    }
}
