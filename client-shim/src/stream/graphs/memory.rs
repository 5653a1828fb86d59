//! Memory that graphs allocate (HIP API: hipGraphAddMemAllocNode).
//!
//! A node's memory has one address for as long as its graph and what was instantiated from that exist: it is allocated when the node is
//! added, and given back when the last of them is gone. In between a launch only notes that the program may use it, and a node that
//! frees it, or the program, that this is over.

use std::collections::{BTreeMap, BTreeSet};

use hipr_abi::{
    hipGraphMemAttrReservedMemCurrent, hipGraphMemAttrReservedMemHigh, hipGraphMemAttrUsedMemCurrent,
    hipGraphMemAttrUsedMemHigh, hipGraphMemAttributeType,
};
use hipr_proto::{HipError, HipResult};

use crate::convert::Ptr;

/// Memory of a node.
#[derive(Debug)]
struct Entry {
    bytes: u64,
    device: i32,
    /// Whether the graph with the node exists.
    has_graph: bool,
    /// Whether something that was instantiated from the graph exists: at most one at a time does.
    has_exec: bool,
    /// Whether it was allocated by a launch.
    is_launched: bool,
    /// Whether it is allocated, and not freed.
    is_live: bool,
}

/// The memory that the nodes of a graph allocate and free.
#[derive(Clone, Debug, Default)]
pub(super) struct MemoryNodes {
    /// The addresses that they allocate.
    pub(super) allocated: Vec<Ptr>,
    /// The addresses that they free.
    pub(super) freed: Vec<Ptr>,
}

impl MemoryNodes {
    /// Returns whether no node allocates or frees memory.
    pub(super) fn is_empty(&self) -> bool {
        self.allocated.is_empty() && self.freed.is_empty()
    }
}

/// The most bytes of a device that there were.
#[derive(Clone, Copy, Debug, Default)]
struct High {
    used: u64,
    reserved: u64,
}

/// The memory of all graphs.
#[derive(Debug, Default)]
pub struct GraphMemory {
    entries: BTreeMap<Ptr, Entry>,
    highs: BTreeMap<i32, High>,
}

impl GraphMemory {
    /// Adds the memory of a node.
    pub fn add(&mut self, at: Ptr, bytes: u64, device: i32) {
        let (has_graph, has_exec, is_launched, is_live) = (true, false, false, false);
        self.entries.insert(at, Entry { bytes, device, has_graph, has_exec, is_launched, is_live });
    }

    /// Returns whether this is the memory of a node.
    pub fn has(&self, at: Ptr) -> bool {
        self.entries.contains_key(&at)
    }

    /// Forgets the memory of a device that was reset.
    pub fn clear(&mut self, device: i32) {
        self.entries.retain(|_, entry| entry.device != device);
        self.highs.remove(&device);
    }

    /// Notes that a graph is instantiated.
    ///
    /// # Errors
    /// `hipErrorNotSupported`: there is something that was instantiated from it.
    pub(super) fn instantiate(&mut self, allocated: &[Ptr]) -> HipResult<()> {
        if allocated.iter().filter_map(|at| self.entries.get(at)).any(|entry| entry.has_exec) {
            return Err(HipError::NOT_SUPPORTED);
        }
        self.change(allocated, |entry| entry.has_exec = true);
        Ok(())
    }

    /// Notes a launch; if it `frees_first`, what is allocated still is freed before.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: what it would allocate was allocated by the launch before, and not freed.
    pub(super) fn launch(&mut self, nodes: &MemoryNodes, frees_first: bool) -> HipResult<()> {
        let mut allocated = nodes.allocated.iter().filter_map(|at| self.entries.get(at));
        if !frees_first && allocated.any(|entry| entry.is_live) {
            return Err(HipError::INVALID_VALUE);
        }
        self.change(&nodes.allocated, |entry| (entry.is_launched, entry.is_live) = (true, true));
        let entries = nodes.allocated.iter().filter_map(|at| self.entries.get(at));
        for device in entries.map(|entry| entry.device).collect::<BTreeSet<_>>() {
            let [used, reserved] = self.now(device);
            let high = self.highs.entry(device).or_default();
            (high.used, high.reserved) = (high.used.max(used), high.reserved.max(reserved));
        }
        self.change(&nodes.freed, |entry| entry.is_live = false);
        Ok(())
    }

    fn change(&mut self, all: &[Ptr], change: impl Fn(&mut Entry)) {
        for at in all {
            self.entries.get_mut(at).into_iter().for_each(&change);
        }
    }

    /// Notes that the program frees memory; returns whether it has to be given back, `None` if it is not the memory of a node.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: it is not allocated.
    pub fn free(&mut self, at: Ptr) -> HipResult<Option<bool>> {
        let Some(entry) = self.entries.get_mut(&at) else { return Ok(None) };
        if !std::mem::take(&mut entry.is_live) {
            return Err(HipError::INVALID_VALUE);
        }
        Ok(Some(!self.take_unused(&[at]).is_empty()))
    }

    /// Notes that the graph is gone whose nodes allocate this memory; returns what of it has to be given back.
    pub fn forget_graph(&mut self, allocated: &[Ptr]) -> Vec<Ptr> {
        self.change(allocated, |entry| entry.has_graph = false);
        self.take_unused(allocated)
    }

    /// Notes that the instance is gone of the graph whose nodes allocate this memory; returns what of it has to be given back.
    pub(super) fn forget_exec(&mut self, allocated: &[Ptr]) -> Vec<Ptr> {
        self.change(allocated, |entry| entry.has_exec = false);
        self.take_unused(allocated)
    }

    fn take_unused(&mut self, all: &[Ptr]) -> Vec<Ptr> {
        let is_unused = |entry: &Entry| !entry.has_graph && !entry.has_exec && !entry.is_live;
        let unused = all.iter().copied().filter(|at| self.entries.get(at).is_some_and(is_unused));
        let unused: Vec<Ptr> = unused.collect();
        for at in &unused {
            self.entries.remove(at);
        }
        unused
    }

    /// Returns the bytes of a device that are allocated, and those that graphs hold once they were launched.
    fn now(&self, device: i32) -> [u64; 2] {
        let sum = |counts: fn(&Entry) -> bool| {
            let counted = self.entries.values().filter(|entry| entry.device == device && counts(entry));
            counted.map(|entry| entry.bytes).sum()
        };
        [sum(|entry| entry.is_live), sum(|entry| entry.is_launched)]
    }

    /// Returns an attribute of a device's memory for graphs (HIP API: hipDeviceGetGraphMemAttribute).
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: no such attribute.
    pub fn attribute(&self, device: i32, attribute: hipGraphMemAttributeType) -> HipResult<u64> {
        let [used, reserved] = self.now(device);
        let high = self.highs.get(&device).copied().unwrap_or_default();
        match attribute {
            hipGraphMemAttrUsedMemCurrent => Ok(used),
            hipGraphMemAttrUsedMemHigh => Ok(high.used),
            hipGraphMemAttrReservedMemCurrent => Ok(reserved),
            hipGraphMemAttrReservedMemHigh => Ok(high.reserved),
            _ => Err(HipError::INVALID_VALUE),
        }
    }

    /// Begins to look for the most anew (HIP API: hipDeviceSetGraphMemAttribute).
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: no attribute that can be set.
    pub fn reset_attribute(&mut self, device: i32, attribute: hipGraphMemAttributeType) -> HipResult<()> {
        let high = self.highs.entry(device).or_default();
        match attribute {
            hipGraphMemAttrUsedMemHigh => high.used = 0,
            hipGraphMemAttrReservedMemHigh => high.reserved = 0,
            _ => return Err(HipError::INVALID_VALUE),
        }
        Ok(())
    }
}
