//! Access of a device to the memory of another one. The library has it for the whole process; each owner has its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use hipr_proto::{HipError, HipResult};

use super::Owner;

/// A library, and two devices of it: one that may use the memory of the other.
type Pair = (usize, i32, i32);

/// How many owners have each access.
static ACCESSES: Mutex<BTreeMap<Pair, usize>> = Mutex::new(BTreeMap::new());

impl Owner {
    /// HIP API: hipDeviceEnablePeerAccess, hipDeviceDisablePeerAccess, of the current device.
    ///
    /// # Errors
    /// Those of HIP.
    pub(crate) fn set_peer_access(&mut self, peer: i32, enabled: bool) -> HipResult<()> {
        if peer == self.device {
            return Err(HipError::INVALID_DEVICE);
        }
        let access = (self.device, peer);
        if !enabled {
            return match self.peers.remove(&access) {
                true => self.end_access(access),
                false => Err(HipError::PEER_ACCESS_NOT_ENABLED),
            };
        }
        if self.peers.contains(&access) {
            return Err(HipError::PEER_ACCESS_ALREADY_ENABLED);
        }
        self.enter()?;
        let mut accesses = ACCESSES.lock().unwrap_or_else(PoisonError::into_inner);
        let owners = accesses.entry(self.pair(access)).or_default();
        if *owners == 0 {
            // SAFETY: any numbers may be passed.
            match self.check(unsafe { self.hip.hipDeviceEnablePeerAccess(peer, 0) }) {
                // What else uses the library in this process has enabled it.
                Ok(()) | Err(HipError::PEER_ACCESS_ALREADY_ENABLED) => {}
                failed => return failed,
            }
        }
        *owners += 1;
        self.peers.insert(access);
        Ok(())
    }

    /// Ends the access of all devices.
    pub(super) fn release_peers(&mut self) {
        for access in std::mem::take(&mut self.peers) {
            Self::note(self.end_access(access));
        }
    }

    /// Ends an access that this owner had.
    fn end_access(&self, access: (i32, i32)) -> HipResult<()> {
        let mut accesses = ACCESSES.lock().unwrap_or_else(PoisonError::into_inner);
        let owners = accesses.entry(self.pair(access)).or_default();
        *owners = owners.saturating_sub(1);
        if *owners > 0 {
            return Ok(());
        }
        accesses.remove(&self.pair(access));
        self.enter_device(access.0)?;
        // SAFETY: any number may be passed.
        self.check(unsafe { self.hip.hipDeviceDisablePeerAccess(access.1) })
    }

    fn pair(&self, (device, peer): (i32, i32)) -> Pair {
        (Arc::as_ptr(&self.hip).addr(), device, peer)
    }
}
