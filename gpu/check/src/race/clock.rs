//! What waves know to be before their next access.

use std::collections::HashMap;
use std::sync::Arc;

use super::shadow::Access;
use crate::lock::Lock;

/// The most waves that a workgroup has.
pub(super) const WAVES: usize = 16;

/// What is known of a workgroup.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// All accesses before this tick come before.
    pub(super) below: u32,
    /// Of each wave, the accesses of this tick and those before it do, too.
    pub(super) waves: [u32; WAVES],
}

impl Seen {
    fn join(&mut self, other: &Self) {
        self.below = self.below.max(other.below);
        for (own, other) in self.waves.iter_mut().zip(other.waves) {
            *own = (*own).max(other);
        }
    }

    pub(super) fn has(&self, access: &Access) -> bool {
        access.tick < self.below || access.tick <= self.waves[usize::from(access.wave) % WAVES]
    }
}

/// What a wave knows of all workgroups.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock(pub(super) HashMap<u32, Seen>);

impl Clock {
    fn join(&mut self, other: &Self) {
        for (group, seen) in &other.0 {
            self.0.entry(*group).or_default().join(seen);
        }
    }
}

/// Adds what `other` knows.
pub(super) fn join(clock: &mut Arc<Clock>, other: &Arc<Clock>) {
    if !Arc::ptr_eq(clock, other) && !other.0.is_empty() {
        if clock.0.is_empty() {
            *clock = Arc::clone(other);
        } else {
            Arc::make_mut(clock).join(other);
        }
    }
}

/// What was released by stores to one word.
#[derive(Debug, Default)]
pub(super) struct Released {
    /// To all.
    pub(super) all: Arc<Clock>,
    /// To the workgroup of this number.
    pub(super) own: HashMap<u32, Arc<Clock>>,
}

/// What the workgroups of a grid know in common.
#[derive(Debug, Default)]
pub(crate) struct Grid {
    /// By the words that were stored to.
    pub(super) released: Lock<HashMap<u64, Released>>,
    /// What waves knew when they came to a meeting of all workgroups.
    pub(super) met: Lock<Arc<Clock>>,
}
