//! What the client knows of changes of the device's free memory.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hipr_proto::Opcode;

/// What a request does to the free memory of the device, as far as a client can know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// Nothing.
    None,
    /// What the account of the lease says, where the memory is part of it; whoever keeps the account knows.
    Account,
    /// Nothing, unless there is memory that is freed in the order of streams: the worker may release it behind this.
    Settles,
    /// It allocates or frees memory in the order of streams.
    StreamOrdered,
    /// Anything.
    Unknown,
}

/// The one list of requests that cannot change free memory by themselves. What is not in it can.
const fn effect(op: Opcode) -> Effect {
    match op {
        Opcode::MALLOC_AT | Opcode::MALLOC_SHARED | Opcode::FREE | Opcode::FREE_HOST | Opcode::MEM_RETURN => {
            Effect::Account
        }
        Opcode::NAME
        | Opcode::PING
        | Opcode::STATIC
        | Opcode::GET_DEVICE_COUNT
        | Opcode::SET_DEVICE
        | Opcode::GET_DEVICE
        | Opcode::GET_DEVICE_PROPERTIES
        | Opcode::DEVICE_GET_ATTRIBUTE
        | Opcode::DEVICE_GET_LIMIT
        | Opcode::DEVICE_CAN_ACCESS_PEER
        | Opcode::DEVICE_GET
        | Opcode::DEVICE_GET_NAME
        | Opcode::DEVICE_TOTAL_MEM
        | Opcode::DEVICE_GET_PCI_BUS_ID
        | Opcode::DEVICE_GET_BY_PCI_BUS_ID
        | Opcode::DEVICE_COMPUTE_CAPABILITY
        | Opcode::DEVICE_GET_UUID
        | Opcode::DEVICE_GET_P2P_ATTRIBUTE
        | Opcode::DEVICE_GET_STREAM_PRIORITY_RANGE
        | Opcode::GET_DEVICE_FLAGS
        | Opcode::RUNTIME_GET_VERSION
        | Opcode::DRIVER_GET_VERSION
        | Opcode::MEM_GET_INFO
        | Opcode::MEM_INFO
        | Opcode::POINTER_GET_ATTRIBUTES
        | Opcode::POINTER_GET_ATTRIBUTE
        | Opcode::MEM_PTR_GET_INFO
        | Opcode::HOST_GET_DEVICE_POINTER
        | Opcode::MEMSET
        | Opcode::MEMSET_ASYNC
        | Opcode::MEMSET_D8
        | Opcode::MEMSET_D16
        | Opcode::MEMSET_D32
        | Opcode::MEMCPY_ASYNC
        | Opcode::MEMCPY_2D_ASYNC
        | Opcode::MEMCPY_3D_ASYNC
        | Opcode::MEMCPY_DTOD
        | Opcode::MEMCPY_DTOD_ASYNC
        | Opcode::MEMCPY_HTOD
        | Opcode::MEMCPY_HTOD_ASYNC
        | Opcode::MEMCPY_PEER_ASYNC
        | Opcode::MEM_WATCH
        | Opcode::MEM_PUSH
        | Opcode::MEM_SHARE
        | Opcode::CACHE_OPEN
        | Opcode::CACHE_HAVE
        | Opcode::CACHE_PUT
        | Opcode::CACHE_COPY
        | Opcode::PUT_PACKED
        | Opcode::VARIABLE_PUT
        | Opcode::LAUNCH_KERNEL
        | Opcode::LAUNCH_COOPERATIVE_KERNEL
        | Opcode::MODULE_LAUNCH_KERNEL
        | Opcode::FUNC_GET_ATTRIBUTES
        | Opcode::OCCUPANCY_MAX_POTENTIAL_BLOCK_SIZE
        | Opcode::OCCUPANCY_MAX_ACTIVE_BLOCKS_PER_SM
        | Opcode::EVENT_CREATE
        | Opcode::EVENT_CREATE_WITH_FLAGS
        | Opcode::EVENT_RECORD
        | Opcode::EVENT_ELAPSED_TIME
        | Opcode::STREAM_CREATE
        | Opcode::STREAM_CREATE_WITH_FLAGS
        | Opcode::STREAM_CREATE_WITH_PRIORITY
        | Opcode::STREAM_GET_FLAGS
        | Opcode::STREAM_GET_PRIORITY
        | Opcode::STREAM_IS_CAPTURING => Effect::None,
        Opcode::DEVICE_SYNCHRONIZE
        | Opcode::STREAM_SYNCHRONIZE
        | Opcode::STREAM_QUERY
        | Opcode::STREAM_WATCH
        | Opcode::STREAM_WAIT_EVENT
        | Opcode::STREAM_DESTROY
        | Opcode::EVENT_SYNCHRONIZE
        | Opcode::EVENT_QUERY
        | Opcode::EVENT_WATCH
        | Opcode::EVENT_DESTROY
        | Opcode::MEMCPY
        | Opcode::MEMCPY_2D
        | Opcode::MEMCPY_3D
        | Opcode::MEMCPY_DTOH
        | Opcode::MEMCPY_DTOH_ASYNC
        | Opcode::GET_PACKED
        | Opcode::MEMCPY_PEER
        | Opcode::MEM_CHANGES
        | Opcode::MEM_CHANGES_PACKED
        | Opcode::MEM_LEASE => Effect::Settles,
        Opcode::MALLOC_ASYNC
        | Opcode::FREE_ASYNC
        | Opcode::MALLOC_FROM_POOL_ASYNC
        | Opcode::MEM_POOL_CREATE
        | Opcode::MEM_POOL_DESTROY
        | Opcode::MEM_POOL_SET_ATTRIBUTE
        | Opcode::MEM_POOL_TRIM_TO
        | Opcode::DEVICE_SET_MEM_POOL => Effect::StreamOrdered,
        _ => Effect::Unknown,
    }
}

/// Counts what may have changed the device's free memory, other than the account of the lease says.
#[derive(Debug, Default)]
pub(crate) struct FreeMemory {
    /// Number of requests that may have, in the order in which they left.
    changes: AtomicU64,
    is_stream_ordered: AtomicBool,
    /// The greatest number of a `MEM_INFO` of which the worker has said that it no longer holds.
    outdated: AtomicU64,
}

impl FreeMemory {
    /// Notes a request that leaves now.
    #[inline(always)]
    pub(crate) fn note(&self, op: Opcode) {
        match effect(op) {
            Effect::None | Effect::Account => return,
            Effect::Settles if !self.is_stream_ordered.load(Ordering::Acquire) => return,
            Effect::StreamOrdered => self.is_stream_ordered.store(true, Ordering::Release),
            Effect::Settles | Effect::Unknown => {}
        }
        self.change();
    }

    /// Notes that something may have changed free memory.
    #[cold]
    pub(crate) fn change(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns how often something may have changed free memory.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Notes that the reply to the `MEM_INFO` with this number no longer holds, nor one before it.
    pub(crate) fn end(&self, number: u64) {
        self.outdated.fetch_max(number, Ordering::AcqRel);
    }

    /// Returns whether the reply to the `MEM_INFO` with this number still holds, as far as the worker has said.
    pub(crate) fn holds(&self, number: u64) -> bool {
        self.outdated.load(Ordering::Acquire) < number
    }
}

#[cfg(test)]
mod tests {
    use hipr_proto::op::OPS;

    use super::*;

    #[test]
    fn what_is_not_listed_may_change_free_memory() {
        let memory = FreeMemory::default();
        let notes = |op: Opcode| {
            let before = memory.changes();
            memory.note(op);
            memory.changes() > before
        };
        let first: Vec<_> = OPS.iter().filter(|info| effect(info.code) == Effect::Settles).collect();
        assert!(!first.is_empty() && first.iter().all(|info| !notes(info.code)), "nothing is freed in order");
        assert!(notes(Opcode::FREE_ASYNC) && first.iter().all(|info| notes(info.code)));
        for info in OPS {
            let is_listed = matches!(effect(info.code), Effect::None | Effect::Account);
            assert_eq!(notes(info.code), !is_listed, "{}", info.name);
        }
        // Whatever allocates memory, loads code or makes graphs.
        for info in OPS {
            let makes = [
                "MALLOC",
                "MODULE_LOAD",
                "MODULE_UNLOAD",
                "GRAPH",
                "POOL",
                "IPC",
                "REGISTER",
                "RESET",
                "CAPTURE",
            ];
            if makes.iter().any(|word| info.name.contains(word))
                && !["MALLOC_AT", "MALLOC_SHARED", "STREAM_IS_CAPTURING"].contains(&info.name)
            {
                assert!(notes(info.code), "{}", info.name);
            }
        }
        assert!(notes(Opcode(0x0fff)), "nobody knows it");
    }

    #[test]
    fn a_reply_holds_until_the_worker_says_otherwise() {
        let memory = FreeMemory::default();
        assert!(memory.holds(1) && !memory.holds(0));
        memory.end(3);
        memory.end(2);
        assert!(!memory.holds(3) && memory.holds(4));
        memory.end(u64::MAX);
        assert!(!memory.holds(u64::MAX), "a worker may say so of all");
    }
}
