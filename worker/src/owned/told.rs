//! What a client was told of free memory (`MEM_INFO`), for as long as it holds.

use hipr_proto::HipResult;

use super::Owned;

/// The reply to a `MEM_INFO`, and what the client reckons on from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// The number of the request.
    pub(crate) number: u64,
    device: i32,
    free_bytes: u64,
    /// Bytes that the client had placed.
    placed_bytes: u64,
    memory_max_bytes: u64,
}

impl Owned {
    /// Returns the free and total memory that the session may use, in bytes, where it may use at most `memory_max_bytes`.
    pub(crate) fn mem_info(&self, memory_max_bytes: u64) -> HipResult<(u64, u64)> {
        let (free_bytes, total_bytes) = self.context_ref()?.mem_info()?;
        let room = memory_max_bytes.saturating_sub(self.memory_bytes());
        Ok((free_bytes.min(room), total_bytes.min(memory_max_bytes)))
    }

    /// Notes what the reply to the `MEM_INFO` with this number says.
    pub(crate) fn tell(&mut self, number: u64, free_bytes: u64, memory_max_bytes: u64) -> HipResult<()> {
        let (device, placed_bytes) = (self.context_ref()?.device(), self.lease.placed_bytes());
        self.told = Some(Told { number, device, free_bytes, placed_bytes, memory_max_bytes });
        Ok(())
    }

    /// Returns whether what the client reckons is what `MEM_GET_INFO` would return; true if the client was told nothing. A session that
    /// has more than it may have does not know how much less would be free.
    pub(crate) fn told_holds(&self) -> bool {
        let Some(told) = self.told else { return true };
        let has = |free_bytes: u64| {
            let now = free_bytes.wrapping_add(self.lease.placed_bytes());
            now == told.free_bytes.wrapping_add(told.placed_bytes)
        };
        self.memory_bytes() <= told.memory_max_bytes
            && self.context_ref().is_ok_and(|context| context.device() == told.device)
            && self.mem_info(told.memory_max_bytes).is_ok_and(|(free_bytes, _)| has(free_bytes))
    }
}
