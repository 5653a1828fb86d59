//! What the runtime says of itself, its clock, its extensions, and events that no queue has.

use std::ffi::CStr;
use std::sync::Mutex;

use hipr_grid::lock;
use rustix::time::{ClockId, clock_gettime};

use crate::agent::handle_of;
use crate::loader;
use crate::memory::AgentIndex;
use crate::pointer::{Out, Ptr};
use crate::runtime::{Runtime, runtime};
use crate::status::{HsaResult, Status};
use crate::types::{Agent, SystemEventHandler};

/// The system clock counts nanoseconds.
pub(crate) const CLOCK_HZ: u64 = 1_000_000_000;

/// Returns the time of the system's clock, in nanoseconds. Kernels, copies and the host have this one clock.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec as u64 * CLOCK_HZ + time.tv_nsec as u64
}

/// The version of AMD's interface that the functions follow.
const INTERFACE: (u16, u16) = (1, 7);
/// What AMD's runtime 6.4.3 says of the standard's version.
const VERSION: (u16, u16) = (1, 15);
/// Length in bytes of `HSA_SYSTEM_INFO_EXTENSIONS`.
const EXTENSIONS_BYTES: usize = 128;

/// `hsa_system_get_info`.
pub(crate) fn info(attribute: u32, value: Ptr) -> HsaResult {
    runtime()?;
    match attribute {
        0 => value.put(VERSION.0),
        1 => value.put(VERSION.1),
        2 => value.put(now()),
        3 => value.put(CLOCK_HZ),
        4 => value.put(u64::MAX),
        5 => value.put(0u32),
        6 => value.put(1u32),
        7 => {
            let mut bits = [0u8; EXTENSIONS_BYTES];
            for extension in EXTENSIONS.iter().filter(|extension| extension.is_offered) {
                let number = usize::from(extension.number);
                bits[number / 8 % EXTENSIONS_BYTES] |= 1 << (number % 8);
            }
            value.put_bytes(&bits)
        }
        0x200 => value.put(BUILD.as_ptr()),
        // Memory of the program becomes accessible by attributes, not by itself: as without XNACK on a real GPU.
        0x201 => value.put(true),
        0x202 | 0x203 | 0x206 => value.put(false),
        0x204 => value.put(true),
        0x205 => value.put(true),
        0x207 => value.put(INTERFACE.0),
        0x208 => value.put(INTERFACE.1),
        _ => Err(Status::ERROR_INVALID_ARGUMENT),
    }
}

/// `HSA_AMD_SYSTEM_INFO_BUILD_VERSION`.
const BUILD: &CStr = match CStr::from_bytes_with_nul(
    concat!("hipr ", env!("CARGO_PKG_VERSION"), " (emulated)\0").as_bytes(),
) {
    Ok(text) => text,
    Err(_) => c"hipr",
};

/// `hsa_status_string`.
pub(crate) fn status_string(status: Status, text: Out<Ptr>) -> HsaResult {
    let known = status.text().ok_or(Status::ERROR_INVALID_ARGUMENT)?;
    text.put(Ptr::at(known.as_ptr().expose_provenance() as u64))
}

/// An extension that has a number.
struct Extension {
    number: u16,
    name: &'static CStr,
    is_offered: bool,
}

const EXTENSIONS: &[Extension] = &[
    Extension { number: 0, name: c"HSA_EXTENSION_FINALIZER", is_offered: false },
    Extension { number: 1, name: c"HSA_EXTENSION_IMAGES", is_offered: false },
    Extension { number: 2, name: c"HSA_EXTENSION_PERFORMANCE_COUNTERS", is_offered: false },
    Extension { number: 3, name: c"HSA_EXTENSION_PROFILING_EVENTS", is_offered: false },
    Extension { number: 0x200, name: c"HSA_EXTENSION_AMD_PROFILER", is_offered: false },
    Extension { number: LOADER, name: c"HSA_EXTENSION_AMD_LOADER", is_offered: true },
    Extension { number: 0x202, name: c"HSA_EXTENSION_AMD_AQLPROFILE", is_offered: false },
    Extension { number: 0x203, name: c"HSA_EXTENSION_AMD_PC_SAMPLING", is_offered: false },
];

/// The number of AMD's loader extension.
const LOADER: u16 = 0x201;
/// The version of the loader extension.
const LOADER_VERSION: (u16, u16) = (1, 3);

fn extension(number: u16) -> HsaResult<&'static Extension> {
    EXTENSIONS.iter().find(|extension| extension.number == number).ok_or(Status::ERROR_INVALID_ARGUMENT)
}

/// `hsa_extension_get_name`.
pub(crate) fn extension_name(number: u16, name: Out<Ptr>) -> HsaResult {
    name.put(Ptr::at(extension(number)?.name.as_ptr().expose_provenance() as u64))
}

/// `hsa_system_extension_supported`.
pub(crate) fn extension_supported(number: u16, major: u16, minor: u16, result: Out<bool>) -> HsaResult {
    runtime()?;
    let is_offered = extension(number)?.is_offered;
    result.put(is_offered && major == LOADER_VERSION.0 && minor <= LOADER_VERSION.1)
}

/// `hsa_system_major_extension_supported`.
pub(crate) fn major_extension_supported(
    number: u16,
    major: u16,
    minor: Out<u16>,
    result: Out<bool>,
) -> HsaResult {
    runtime()?;
    let is_offered = extension(number)?.is_offered && major == LOADER_VERSION.0;
    if minor.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    if is_offered {
        minor.put(LOADER_VERSION.1)?;
    }
    result.put(is_offered)
}

/// `hsa_system_get_extension_table`.
pub(crate) fn extension_table(number: u16, major: u16, minor: u16, table: Ptr) -> HsaResult {
    runtime()?;
    extension(number)?;
    if table.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let len_bytes = loader::table_bytes(minor).ok_or(Status::ERROR)?;
    major_extension_table(number, major, len_bytes, table)
}

/// `hsa_system_get_major_extension_table`: as many functions as fit into `len_bytes`.
pub(crate) fn major_extension_table(number: u16, major: u16, len_bytes: usize, table: Ptr) -> HsaResult {
    runtime()?;
    if table.is_null() || len_bytes == 0 {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    if !extension(number)?.is_offered || major != LOADER_VERSION.0 {
        return Err(Status::ERROR);
    }
    table.put_bytes(loader::table(len_bytes))
}

/// The number of the extension for images.
const IMAGES: u16 = 1;

/// Returns the extensions that an agent has. GPUs answer questions about images, of which they say that they have none: AMD's runtime learns
/// only so how rows of pitched memory are aligned.
pub(crate) fn extensions_of(runtime: &Runtime, agent: AgentIndex) -> impl Iterator<Item = u16> + use<> {
    runtime.agents[agent].arch.map(|_| IMAGES).into_iter()
}

/// Returns whether an agent has an extension.
fn is_known_to(number: u16, agent: Agent) -> HsaResult<bool> {
    let runtime = runtime()?;
    let index = runtime.agent(agent)?;
    extension(number)?;
    Ok(extensions_of(&runtime, index).any(|known| known == number))
}

/// `hsa_agent_extension_supported`.
pub(crate) fn agent_extension_supported(
    number: u16,
    agent: Agent,
    major: u16,
    minor: u16,
    result: Out<bool>,
) -> HsaResult {
    result.put(is_known_to(number, agent)? && (major, minor) == (1, 0))
}

/// `hsa_agent_major_extension_supported`.
pub(crate) fn agent_major_extension_supported(
    number: u16,
    agent: Agent,
    major: u16,
    minor: Out<u16>,
    result: Out<bool>,
) -> HsaResult {
    let is_known = is_known_to(number, agent)? && major == 1;
    if minor.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    if is_known {
        minor.put(0)?;
    }
    result.put(is_known)
}

/// `hsa_amd_enable_logging`: what there is to log goes to hipr's log.
pub(crate) fn enable_logging(_flags: Out<u8>, _file: Ptr) -> HsaResult {
    runtime().map(drop)
}

/// Who is told of events that no queue has.
#[derive(Default)]
pub(crate) struct EventHandlers(Mutex<Vec<(SystemEventHandler, Ptr)>>);

/// `hsa_amd_event_t` of a memory fault.
#[repr(C)]
struct MemoryFaultEvent {
    /// `HSA_AMD_GPU_MEMORY_FAULT_EVENT`.
    event_type: u32,
    agent: Agent,
    virtual_address: u64,
    /// `hsa_amd_memory_fault_reason_t`.
    reasons: u32,
}

/// `HSA_AMD_MEMORY_FAULT_PAGE_NOT_PRESENT`.
const PAGE_NOT_PRESENT: u32 = 1;

impl EventHandlers {
    /// Tells of an access to an address where an agent has no memory. The program's functions may take their time and call the library.
    pub(crate) fn tell_memory_fault(&self, agent: AgentIndex, addr: u64) {
        // The hardware knows the page only.
        let virtual_address = addr & !0xfff;
        let agent = handle_of(agent);
        let event = MemoryFaultEvent { event_type: 0, agent, virtual_address, reasons: PAGE_NOT_PRESENT };
        let handlers = lock(&self.0).clone();
        for (handler, data) in handlers {
            if let Some(handler) = handler {
                // SAFETY: the program's function, with an event as the interface says and its own data.
                unsafe { handler((&raw const event).cast(), data.raw()) };
            }
        }
    }
}

/// `hsa_amd_register_system_event_handler`.
pub(crate) fn register_event_handler(handler: SystemEventHandler, data: Ptr) -> HsaResult {
    let runtime = runtime()?;
    if handler.is_none() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    lock(&runtime.events.0).push((handler, data));
    Ok(())
}
