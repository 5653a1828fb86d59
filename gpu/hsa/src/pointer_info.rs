//! What the runtime knows of an address.

use crate::agent::handle_of;
use crate::facts::{AgentIndex, Agents};
use crate::lock::Locks;
use crate::memory::Kind;
use crate::pointer::{Out, Ptr};
use crate::runtime::{Runtime, runtime};
use crate::status::{HsaResult, Status};
use crate::types::{Agent, Alloc, PointerInfo};
use crate::vmem::Vmem;

/// `hsa_amd_pointer_type_t`.
mod pointer_type {
    pub(super) const UNKNOWN: u32 = 0;
    pub(super) const HSA: u32 = 1;
    pub(super) const LOCKED: u32 = 2;
    pub(super) const IPC: u32 = 4;
    pub(super) const RESERVED: u32 = 5;
}

/// A range of addresses, as it is told.
struct Known {
    pointer_type: u32,
    base: u64,
    len_bytes: u64,
    owner: Option<AgentIndex>,
    flags: u32,
    access: Agents,
    user_data: Ptr,
}

impl Runtime {
    fn known_at(&self, addr: u64) -> Option<Known> {
        if let Some(found) = self.memory.find(addr) {
            let pointer_type = match found.kind {
                Kind::Pool => pointer_type::HSA,
                Kind::Ipc => pointer_type::IPC,
            };
            return Some(Known {
                pointer_type,
                base: found.base,
                len_bytes: found.requested_bytes,
                owner: Some(found.owner),
                flags: found.flags,
                access: found.access,
                user_data: found.user_data,
            });
        }
        if let Some(found) = self.part::<Vmem>().find(addr) {
            let pointer_type = if found.is_mapped { pointer_type::HSA } else { pointer_type::RESERVED };
            return Some(Known {
                pointer_type,
                base: found.base,
                len_bytes: found.len_bytes,
                owner: found.owner,
                flags: found.flags,
                access: found.access,
                user_data: found.user_data,
            });
        }
        let lock = self.part::<Locks>().find(addr)?;
        Some(Known {
            pointer_type: pointer_type::LOCKED,
            base: lock.base,
            len_bytes: lock.len_bytes,
            owner: Some(0),
            flags: lock.flags,
            access: lock.access,
            user_data: lock.user_data,
        })
    }
}

/// `hsa_amd_pointer_info`.
pub(crate) fn info(
    ptr: Ptr,
    info: Out<PointerInfo>,
    alloc: Alloc,
    count: Out<u32>,
    accessible: Out<Out<Agent>>,
) -> HsaResult {
    let runtime = runtime()?;
    if ptr.is_null() || info.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let len_bytes = Out::<u32>::at(info.addr()).get()?;
    if len_bytes == 0 {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let size = len_bytes.min(size_of::<PointerInfo>() as u32);
    let Some(known) = runtime.known_at(ptr.addr()) else {
        // Only these two members, as far as the caller has them.
        let head = [size, pointer_type::UNKNOWN].map(u32::to_ne_bytes);
        return Ptr::at(info.addr()).put_bytes(&head.as_flattened()[..8.min(size as usize)]);
    };
    if let (Some(alloc), false, false) = (alloc, count.is_null(), accessible.is_null()) {
        let agents: Vec<_> =
            (0..runtime.agents.len()).filter(|&index| known.access.contains(index)).map(handle_of).collect();
        // SAFETY: the program's function, which returns memory of this length, or null.
        let list = unsafe { alloc(agents.len() * size_of::<Agent>()) };
        if list.is_null() {
            return Err(Status::ERROR_OUT_OF_RESOURCES);
        }
        let list = Out::<Agent>::at(list.expose_provenance() as u64);
        for (index, &agent) in agents.iter().enumerate() {
            list.offset(index).put(agent)?;
        }
        accessible.put(list)?;
        count.put(agents.len() as u32)?;
    }
    let told = PointerInfo {
        size,
        pointer_type: known.pointer_type,
        agent_base: Ptr::at(known.base),
        host_base: Ptr::at(known.base),
        size_bytes: known.len_bytes as usize,
        user_data: known.user_data,
        agent_owner: known.owner.map_or(Agent(0), handle_of),
        global_flags: known.flags,
        registered: known.pointer_type != pointer_type::RESERVED,
    };
    Ptr::at(info.addr()).put_bytes(&bytes_of(&told)[..size as usize])
}

/// Returns the structure's bytes; those between its members are 0.
fn bytes_of(told: &PointerInfo) -> [u8; size_of::<PointerInfo>()] {
    let mut bytes = [0; size_of::<PointerInfo>()];
    let mut put = |offset: usize, value: &[u8]| bytes[offset..offset + value.len()].copy_from_slice(value);
    put(std::mem::offset_of!(PointerInfo, size), &told.size.to_ne_bytes());
    put(std::mem::offset_of!(PointerInfo, pointer_type), &told.pointer_type.to_ne_bytes());
    put(std::mem::offset_of!(PointerInfo, agent_base), &told.agent_base.addr().to_ne_bytes());
    put(std::mem::offset_of!(PointerInfo, host_base), &told.host_base.addr().to_ne_bytes());
    put(std::mem::offset_of!(PointerInfo, size_bytes), &told.size_bytes.to_ne_bytes());
    put(std::mem::offset_of!(PointerInfo, user_data), &told.user_data.addr().to_ne_bytes());
    put(std::mem::offset_of!(PointerInfo, agent_owner), &told.agent_owner.0.to_ne_bytes());
    put(std::mem::offset_of!(PointerInfo, global_flags), &told.global_flags.to_ne_bytes());
    put(std::mem::offset_of!(PointerInfo, registered), &[told.registered.into()]);
    bytes
}

/// `hsa_amd_pointer_info_set_userdata`.
pub(crate) fn set_user_data(ptr: Ptr, user_data: Ptr) -> HsaResult {
    let runtime = runtime()?;
    let base = ptr.addr();
    let is_set = runtime.memory.change(base, |allocation| allocation.user_data = user_data).is_ok()
        || runtime.part::<Vmem>().set_user_data(base, user_data)
        || runtime.part::<Locks>().set_user_data(base, user_data);
    if is_set { Ok(()) } else { Err(Status::ERROR_INVALID_ARGUMENT) }
}
