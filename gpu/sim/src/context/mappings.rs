//! Physical memory of a context, and where it is mapped.

use std::sync::Arc;
use std::task::Poll;

use hipr_device::{Mappings, MemoryKind, WaitFor};
use hipr_grid::lock;
use hipr_proto::{HipError, HipResult};

use super::SimContext;
use crate::alloc::{Allocator, Changed, GRANULARITY_BYTES};
use crate::stream::Wait;
use crate::unused::Unused;

impl SimContext {
    /// Changes the allocator when the work is done that may use its memory.
    fn poll_changed<R>(&self, change: impl FnOnce(&mut Allocator) -> HipResult<R>) -> Poll<HipResult<R>> {
        let mut state = lock(&self.shared.state);
        loop {
            match state.streams.wait(WaitFor::Device, None) {
                Ok(Wait::On(fence)) if !fence.watch() => return Poll::Pending,
                Ok(Wait::On(_)) => {}
                Ok(Wait::Over) => return Poll::Ready(change(&mut state.allocator)),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Handles that mappings are not accessible any more.
    fn withdrawn(&self, mappings: &[u64], unused: Vec<Unused>) {
        mappings.iter().for_each(|&ptr| self.shared.note_freed(ptr));
        self.shared.discard(unused);
    }
}

impl Mappings for SimContext {
    fn granularity(&self, device: i32) -> HipResult<u64> {
        Self::check_device(device).map(|()| GRANULARITY_BYTES)
    }

    fn reserve(&mut self, size_bytes: u64, alignment: u64, wanted: u64) -> HipResult<u64> {
        lock(&self.shared.state).allocator.reserve_addresses(size_bytes, alignment, wanted)
    }

    fn free(&mut self, ptr: u64, size_bytes: u64) -> HipResult<()> {
        lock(&self.shared.state).allocator.free_addresses(ptr, size_bytes)
    }

    fn create(&mut self, size_bytes: u64, device: i32) -> HipResult<u64> {
        Self::check_device(device)?;
        lock(&self.shared.state).allocator.create_physical(size_bytes)
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
        if Self::check_device(device).is_err() {
            return Poll::Ready(Err(HipError::INVALID_VALUE));
        }
        let is_accessible = access != 0;
        let set = |allocator: &mut Allocator| allocator.set_access(ptr, size_bytes, is_accessible);
        let changed = if is_accessible {
            set(&mut lock(&self.shared.state).allocator)
        } else {
            match self.poll_changed(set) {
                Poll::Ready(changed) => changed,
                Poll::Pending => return Poll::Pending,
            }
        };
        Poll::Ready(changed.map(|Changed { mappings: changed, unused }| {
            if is_accessible {
                for (ptr, len_bytes) in changed {
                    // Other mappings may have the same bytes.
                    self.note_allocated(ptr, len_bytes, MemoryKind::Device, true);
                }
                self.shared.discard(unused);
            } else {
                let withdrawn: Vec<u64> = changed.into_iter().map(|(ptr, _)| ptr).collect();
                self.withdrawn(&withdrawn, unused);
            }
        }))
    }

    fn poll_unmap(&mut self, ptr: u64, size_bytes: u64) -> Poll<HipResult<()>> {
        if !lock(&self.shared.state).allocator.is_mapping(ptr, size_bytes) {
            return Poll::Ready(Err(HipError::INVALID_VALUE));
        }
        self.poll_changed(|allocator| allocator.unmap_physical(ptr, size_bytes)).map_ok(
            |(was_accessible, unused)| {
                let withdrawn = [ptr];
                self.withdrawn(if was_accessible { &withdrawn } else { &[] }, unused);
            },
        )
    }
}
