//! Handles, constants and structures of HSA's C interface, as far as functions that work need them.

use std::ffi::c_void;

use crate::pointer::{Out, Ptr};
use crate::status::Status;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $(
            $(#[$doc])*
            #[repr(transparent)]
            #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
            pub struct $name(pub u64);

            impl std::fmt::Debug for $name {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    write!(f, "{:#x}", self.0)
                }
            }
        )*
    };
}

handles! {
    /// `hsa_agent_t`.
    Agent;
    /// `hsa_cache_t`.
    Cache;
    /// `hsa_code_object_reader_t`.
    CodeObjectReader;
    /// `hsa_executable_t`.
    Executable;
    /// `hsa_executable_symbol_t`.
    ExecutableSymbol;
    /// `hsa_isa_t`.
    Isa;
    /// `hsa_loaded_code_object_t`.
    LoadedCodeObject;
    /// `hsa_amd_memory_pool_t`.
    MemoryPool;
    /// `hsa_region_t`.
    Region;
    /// `hsa_signal_t`: the address of its structure.
    Signal;
    /// `hsa_signal_group_t`.
    SignalGroup;
    /// `hsa_amd_vmem_alloc_handle_t`.
    VmemHandle;
    /// `hsa_wavefront_t`.
    Wavefront;
    /// A handle of something that is not offered.
    Handle;
}

/// `hsa_signal_value_t`.
pub type SignalValue = i64;

/// `hsa_signal_condition_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Eq,
    Ne,
    Lt,
    Gte,
}

impl Condition {
    /// Returns the condition with this number.
    pub(crate) fn of(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::Eq,
            1 => Self::Ne,
            2 => Self::Lt,
            3 => Self::Gte,
            _ => return None,
        })
    }

    /// Returns whether `value` satisfies it.
    pub(crate) fn holds(self, value: SignalValue, than: SignalValue) -> bool {
        match self {
            Self::Eq => value == than,
            Self::Ne => value != than,
            Self::Lt => value < than,
            Self::Gte => value >= than,
        }
    }
}

/// A callback that is given a handle, as functions that iterate call it.
pub type Each<T> = Option<unsafe extern "C" fn(T, *mut c_void) -> Status>;
/// A callback of a queue: status, queue, data.
pub type QueueCallback = Option<unsafe extern "C" fn(Status, *mut Queue, *mut c_void)>;
/// A callback of a signal: its value and data; returns whether it is called again.
pub type SignalHandler = Option<unsafe extern "C" fn(SignalValue, *mut c_void) -> bool>;
/// A callback for events of the system.
pub type SystemEventHandler = Option<unsafe extern "C" fn(*const c_void, *mut c_void) -> Status>;
/// A callback for the end of an allocation: its address and data.
pub type DeallocationCallback = Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>;
/// A function that is called once.
pub type AsyncFunction = Option<unsafe extern "C" fn(*mut c_void)>;
/// A callback that is given an executable's symbol.
pub type EachSymbol = Option<unsafe extern "C" fn(Executable, ExecutableSymbol, *mut c_void) -> Status>;
/// A callback that is given an executable's symbol of an agent.
pub type EachAgentSymbol =
    Option<unsafe extern "C" fn(Executable, Agent, ExecutableSymbol, *mut c_void) -> Status>;
/// A callback that is given an executable's code object.
pub type EachCodeObject = Option<unsafe extern "C" fn(Executable, LoadedCodeObject, *mut c_void) -> Status>;
/// A function that allocates memory, such as `malloc`.
pub type Alloc = Option<unsafe extern "C" fn(usize) -> *mut c_void>;

/// Calls `callback` with each handle until it returns another status than success, which is returned then.
pub(crate) fn each<T>(
    handles: impl IntoIterator<Item = T>,
    callback: Each<T>,
    data: Ptr,
) -> Result<(), Status> {
    let callback = callback.ok_or(Status::ERROR_INVALID_ARGUMENT)?;
    for handle in handles {
        // SAFETY: the program's function, called with its own data as the standard says.
        match unsafe { callback(handle, data.raw()) } {
            Status::SUCCESS => {}
            other => return Err(other),
        }
    }
    Ok(())
}

/// `hsa_dim3_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Dim3 {
    /// In x.
    pub x: u32,
    /// In y.
    pub y: u32,
    /// In z.
    pub z: u32,
}

/// `hsa_queue_t`, the beginning of `amd_queue_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Queue {
    /// [`queue_type`].
    pub queue_type: u32,
    /// 1 for a queue that takes kernel dispatches.
    pub features: u32,
    /// Address of the first packet.
    pub base_address: u64,
    /// The doorbell.
    pub doorbell_signal: Signal,
    /// Number of packets.
    pub size: u32,
    /// Must be 0.
    pub reserved1: u32,
    /// A number that no other queue has.
    pub id: u64,
}

/// A `hsa_queue_t *`.
pub type QueuePtr = Out<Queue>;

/// Kinds of queues.
pub mod queue_type {
    /// `HSA_QUEUE_TYPE_MULTI`.
    pub const MULTI: u32 = 0;
    /// `HSA_QUEUE_TYPE_SINGLE`.
    pub const SINGLE: u32 = 1;
    /// `HSA_QUEUE_TYPE_COOPERATIVE`.
    pub const COOPERATIVE: u32 = 2;
}

/// `hsa_pitched_ptr_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PitchedPtr {
    /// The first byte.
    pub base: Ptr,
    /// Bytes from row to row.
    pub pitch: usize,
    /// Bytes from layer to layer.
    pub slice: usize,
}

/// `hsa_amd_ipc_memory_t`.
pub type IpcHandle = [u32; 8];

/// `hsa_amd_svm_attribute_pair_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SvmAttribute {
    /// Which attribute.
    pub attribute: u64,
    /// Its value.
    pub value: u64,
}

/// `hsa_amd_memory_access_desc_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemoryAccess {
    /// 0 none, 1 read, 2 write, 3 both.
    pub permissions: u32,
    /// Who may.
    pub agent: Agent,
}

/// `hsa_amd_profiling_dispatch_time_t` and `hsa_amd_profiling_async_copy_time_t`, in ticks of the system's clock.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ProfilingTime {
    /// When it began.
    pub start: u64,
    /// When it was complete.
    pub end: u64,
}

/// `hsa_amd_pointer_info_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PointerInfo {
    /// Size of the structure that the caller has.
    pub size: u32,
    /// One of `hsa_amd_pointer_type_t`.
    pub pointer_type: u32,
    /// First address for agents.
    pub agent_base: Ptr,
    /// First address for the host.
    pub host_base: Ptr,
    /// Length in bytes.
    pub size_bytes: usize,
    /// What the program has attached.
    pub user_data: Ptr,
    /// The agent that has the memory.
    pub agent_owner: Agent,
    /// Flags of the pool.
    pub global_flags: u32,
    /// Whether it is known to all of the process.
    pub registered: bool,
}
