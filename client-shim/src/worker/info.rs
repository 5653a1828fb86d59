//! Free memory, which the worker is asked for only where the answer is not known.
//!
//! What the worker has told (`MEM_INFO`) holds until it says otherwise, apart from what this process does by itself: what it places and
//! frees changes the answer by the account of the lease, and whatever else may change it ends it. All of that is in the order in which
//! requests leave: the account and what was told are changed with the placer locked, as when memory is placed.

use hipr_client::Extra;
use hipr_proto::op::{self, MemGetInfoReply};
use hipr_proto::{Features, HipResult};

use super::links::Link;
use super::placer::DEVICE;
use super::told::Known;
use super::{Worker, lock};
use crate::thread;

impl Worker {
    /// Returns free and total bytes of the current device; waits only if they are not known.
    ///
    /// # Errors
    /// What the worker answers, or a lost connection.
    pub(crate) fn memory_info(&self) -> HipResult<MemGetInfoReply> {
        let link = self.link();
        let connection = &link.connection;
        if !self.features().contains(Features::MEM_INFO)
            || self.there(thread::device()) != DEVICE
            || connection.is_in_doubt()
        {
            return self.ask(&op::MemGetInfo {});
        }
        connection.hear_arrived();
        if let Some(reply) = Self::known_memory(link) {
            return Ok(reply);
        }
        let _asking = lock(&link.places.asking_info);
        // Another thread may have asked meanwhile, behind all that this one has sent.
        if let Some(reply) = Self::known_memory(link) {
            return Ok(reply);
        }
        let mut placer = lock(&link.places.placer);
        let (number, placed_bytes) = (placer.told.next_number(), placer.placed_bytes());
        // What leaves between this and the request counts as later.
        let changes = connection.memory_changes();
        let asked =
            connection.start(&op::MemInfo { number }, Extra { device: Some(DEVICE), ..Extra::default() })?;
        drop(placer);
        let reply = connection.finish(asked)?;
        lock(&link.places.placer).told.learn(Known { number, reply, placed_bytes, changes });
        Ok(reply)
    }

    /// Returns what the worker would say of free memory, if that is known.
    fn known_memory(link: &Link) -> Option<MemGetInfoReply> {
        let connection = &link.connection;
        if connection.is_lost() {
            return None;
        }
        let placer = lock(&link.places.placer);
        placer.told.answer(placer.placed_bytes(), |number, changes| {
            connection.memory_info_holds(number) && connection.memory_changes() == changes
        })
    }
}
