//! What a client asks of a worker with the scripted device, and the bytes that say it.

use std::fmt;

use hipr_proto::op::{self, LaunchArgs, Param, kind};
use hipr_proto::{Op, Opcode, Wire};
use hipr_worker::device::script::Fault;

use crate::choices::noise;

/// The name of the kernel that every module of the device has.
pub const KERNEL: &str = "kernel";
/// Its parameters: one of eight bytes.
pub const KERNEL_PARAMS: [(u32, u32); 1] = [(0, 8)];
/// Its kernarg segment in bytes.
pub const KERNARG_BYTES: u32 = 8;

/// A request, and what is to happen when it is carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// What is asked.
    pub what: What,
    /// Whether it is answered.
    pub loud: bool,
    /// What becomes of the device's first call for it.
    pub fault: Option<Fault>,
}

/// What is asked. Addresses and handles are the scripted device's, which can be known beforehand.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// `INIT`.
    Init,
    /// `PING`.
    Ping,
    /// `SHUTDOWN`.
    Shutdown,
    /// `DEVICE_SYNCHRONIZE`.
    Synchronize,
    /// `STREAM_SYNCHRONIZE` of a stream that is not the client's.
    ForeignStream,
    /// `STREAM_CREATE`.
    StreamCreate,
    /// `MALLOC` of so many bytes.
    Malloc(u64),
    /// `FREE` of an address.
    Free(u64),
    /// `MEMSET`: address, length in bytes, value.
    Fill(u64, u64, u8),
    /// `MEMCPY` to the device: address, and how many bytes.
    Up(u64, usize),
    /// `MEMCPY` from the device: address and length in bytes.
    Down(u64, u64),
    /// `MODULE_LOAD_DATA` of so many bytes.
    Load(usize),
    /// `MODULE_GET_FUNCTION`: module and name.
    Function(u64, String),
    /// `LAUNCH_KERNEL`: function and argument.
    Launch(u64, u64),
    /// `MODULE_GET_FUNCTION` with a name of so many bytes, more than a small tail may have.
    LongName(usize),
    /// An operation that nobody knows, with a payload of so many bytes.
    Unknown(usize),
    /// A `MALLOC` whose fixed part is not all there.
    Short,
}

/// A request's bytes after its header.
#[derive(Clone, Debug, PartialEq)]
pub struct Encoded {
    /// The operation.
    pub op: Opcode,
    /// The fixed part, and a small tail behind it.
    pub fixed: Vec<u8>,
    /// The bulk bytes.
    pub inline: Option<Vec<u8>>,
}

impl What {
    /// The operation.
    pub fn op(&self) -> Opcode {
        match self {
            Self::Init => Opcode::INIT,
            Self::Ping => Opcode::PING,
            Self::Shutdown => Opcode::SHUTDOWN,
            Self::Synchronize => Opcode::DEVICE_SYNCHRONIZE,
            Self::ForeignStream => Opcode::STREAM_SYNCHRONIZE,
            Self::StreamCreate => Opcode::STREAM_CREATE,
            Self::Malloc(_) | Self::Short => Opcode::MALLOC,
            Self::Free(_) => Opcode::FREE,
            Self::Fill(..) => Opcode::MEMSET,
            Self::Up(..) | Self::Down(..) => Opcode::MEMCPY,
            Self::Load(_) => Opcode::MODULE_LOAD_DATA,
            Self::Function(..) | Self::LongName(_) => Opcode::MODULE_GET_FUNCTION,
            Self::Launch(..) => Opcode::LAUNCH_KERNEL,
            Self::Unknown(_) => Opcode(0x0fff),
        }
    }

    /// Bytes that the request, and a good answer to it, bring besides their fixed parts.
    pub fn bulk_bytes(&self) -> usize {
        match self {
            Self::Up(_, len) | Self::Load(len) | Self::LongName(len) | Self::Unknown(len) => *len,
            Self::Down(_, len) => *len as usize,
            _ => 0,
        }
    }

    /// The bytes of a copy to the device.
    pub fn up_bytes(dst: u64, len: usize) -> Vec<u8> {
        let mut bytes = noise(len);
        // So that two copies differ.
        bytes.iter_mut().zip(dst.to_le_bytes()).for_each(|(byte, mark)| *byte ^= mark);
        bytes
    }

    /// What leaves for the worker.
    pub fn encode(&self) -> Encoded {
        match self {
            Self::Init => fixed(&op::Init {}),
            Self::Ping => fixed(&op::Ping {}),
            Self::Shutdown => fixed(&op::Shutdown {}),
            Self::Synchronize => fixed(&op::DeviceSynchronize {}),
            Self::ForeignStream => fixed(&op::StreamSynchronize { stream: 0xdead }),
            Self::StreamCreate => fixed(&op::StreamCreate { flags: 0, priority: 0 }),
            Self::Malloc(size) => fixed(&op::Malloc { size: *size, flags: 0 }),
            Self::Free(device_ptr) => fixed(&op::Free { device_ptr: *device_ptr }),
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
            Self::Load(len) => bulk(&op::ModuleLoadData { data_size: *len as u64 }, noise(*len)),
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
        write!(f, "{:x?}{}", self.what, if self.loud { "" } else { ", not answered" })?;
        match self.fault {
            Some(fault) => write!(f, ", {fault:?}"),
            None => Ok(()),
        }
    }
}
