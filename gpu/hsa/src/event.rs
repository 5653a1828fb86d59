//! Events that no queue has, and who is told of them.

use std::sync::Mutex;

use hipr_grid::lock;

use crate::agent::handle_of;
use crate::facts::AgentIndex;
use crate::pointer::Ptr;
use crate::runtime::runtime;
use crate::status::{HsaResult, Status};
use crate::types::{Agent, SystemEventHandler};

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
pub(crate) fn register_handler(handler: SystemEventHandler, data: Ptr) -> HsaResult {
    let runtime = runtime()?;
    if handler.is_none() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    lock(&runtime.part::<EventHandlers>().0).push((handler, data));
    Ok(())
}
