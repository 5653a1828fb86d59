//! Physical memory of a context, and where it is mapped.

use std::sync::Arc;
use std::task::Poll;

use hipr_device::{Mappings, MemoryKind};
use hipr_grid::lock;
use hipr_proto::{HipError, HipResult};

use super::SimContext;
use crate::alloc::{Allocator, Changed, GRANULARITY_BYTES};

impl SimContext {
    /// Changes the allocator when the work is done that may use its memory.
    fn poll_changed<R>(&self, change: impl FnOnce(&mut Allocator) -> HipResult<R>) -> Poll<HipResult<R>> {
        let mut state = lock(&self.shared.state);
        Self::poll_idle(&mut state).map(|()| change(&mut state.allocator))
    }

    /// Handles that mappings are not accessible any more.
    fn withdrawn(&self, changed: Changed) {
        changed.mappings.into_iter().for_each(|(ptr, _)| self.shared.note_freed(ptr));
        self.shared.discard(changed.unused);
    }
}

impl Mappings for SimContext {
    fn granularity(&self, device: i32) -> HipResult<u64> {
        self.check_device(device).map(|_| GRANULARITY_BYTES)
    }

    fn reserve(&mut self, size_bytes: u64, alignment: u64, wanted: u64) -> HipResult<u64> {
        lock(&self.shared.state).allocator.reserve_addresses(size_bytes, alignment, wanted)
    }

    fn free(&mut self, ptr: u64, size_bytes: u64) -> HipResult<()> {
        lock(&self.shared.state).allocator.free_addresses(ptr, size_bytes)
    }

    fn create(&mut self, size_bytes: u64, device: i32) -> HipResult<u64> {
        let device = self.check_device(device)?;
        lock(&self.shared.state).allocator.create_physical(size_bytes, device)
    }

    fn release(&mut self, physical: u64) -> HipResult<()> {
        let unused = lock(&self.shared.state).allocator.release_physical(physical)?;
        self.shared.discard(vec![unused]);
        Ok(())
    }

    fn export(&mut self, physical: u64) -> HipResult<[u8; 64]> {
        let physical = Arc::clone(lock(&self.shared.state).allocator.physical(physical)?);
        self.gpu.loans.lend_physical(&physical)
    }

    fn import(&mut self, name: &[u8; 64], room_bytes: u64) -> HipResult<(u64, u64)> {
        let physical = self.gpu.loans.borrow_physical(name)?;
        let len_bytes = physical.len_bytes();
        if len_bytes > room_bytes {
            return Err(HipError::OUT_OF_MEMORY);
        }
        Ok((lock(&self.shared.state).allocator.add_physical(physical), len_bytes))
    }

    fn map(&mut self, ptr: u64, size_bytes: u64, physical: u64) -> HipResult<()> {
        lock(&self.shared.state).allocator.map_physical(ptr, size_bytes, physical)
    }

    /// What may be read may be written, too.
    fn poll_set_access(
        &mut self,
        ptr: u64,
        size_bytes: u64,
        device: i32,
        access: u32,
    ) -> Poll<HipResult<()>> {
        let Ok(device) = self.check_device(device) else {
            return Poll::Ready(Err(HipError::INVALID_VALUE));
        };
        let devices = 1 << device;
        if access == 0 {
            let take = |allocator: &mut Allocator| allocator.set_access(ptr, size_bytes, devices, false);
            return self.poll_changed(take).map_ok(|changed| self.withdrawn(changed));
        }
        let changed = lock(&self.shared.state).allocator.set_access(ptr, size_bytes, devices, true);
        Poll::Ready(changed.map(|Changed { mappings, unused }| {
            for (ptr, len_bytes) in mappings {
                // Other mappings may have the same bytes.
                self.note_allocated(ptr, len_bytes, MemoryKind::Device, true);
            }
            self.shared.discard(unused);
        }))
    }

    fn poll_unmap(&mut self, ptr: u64, size_bytes: u64) -> Poll<HipResult<()>> {
        if !lock(&self.shared.state).allocator.is_mapping(ptr, size_bytes) {
            return Poll::Ready(Err(HipError::INVALID_VALUE));
        }
        self.poll_changed(|allocator| allocator.unmap_physical(ptr, size_bytes))
            .map_ok(|changed| self.withdrawn(changed))
    }
}
