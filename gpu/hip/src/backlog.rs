//! The commands of a session that the runtime may not have finished.
//!
//! A runtime queues what it is given, as much as there is. A session's commands are counted here; now and then markers behind
//! them show which are finished.

use std::collections::{BTreeSet, VecDeque};
use std::task::Poll;

use hipr_device::Room;

use super::wait::Sleeper;
use crate::owner::{Marker, Owner};

/// Bytes of host memory that a command is taken to need in the runtime, besides its arguments: what hipr's own library needs on an
/// emulated device.
const COMMAND_BYTES: u64 = 2 << 10;
/// Markers are set when commands take this part of the room.
const PARTS: usize = 4;

/// A number of commands and what they are taken to need.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    commands: usize,
    bytes: u64,
}

impl Count {
    fn add(&mut self, other: Self) {
        self.commands = self.commands.saturating_add(other.commands);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    fn remove(&mut self, other: Self) {
        self.commands = self.commands.saturating_sub(other.commands);
        self.bytes = self.bytes.saturating_sub(other.bytes);
    }
}

/// The commands of a session that may not be finished.
#[derive(Default)]
pub(super) struct Backlog {
    all: Count,
    /// Those that were enqueued since the last markers, and the streams that they are on.
    unmarked: Count,
    streams: BTreeSet<u64>,
    /// Those before markers that are not known to be reached, the oldest first.
    marked: VecDeque<(Vec<Marker>, Count)>,
    /// Markers of streams that are destroyed, for the next group.
    of_destroyed: Vec<Marker>,
}

impl Backlog {
    /// Counts commands that were enqueued on a stream with this many bytes of arguments in all.
    pub(super) fn add(&mut self, stream: u64, commands: usize, args_bytes: usize) {
        let bytes = (commands as u64).saturating_mul(COMMAND_BYTES).saturating_add(args_bytes as u64);
        let count = Count { commands, bytes };
        self.all.add(count);
        self.unmarked.add(count);
        self.streams.insert(stream);
    }

    /// Marks a stream that is about to be destroyed with its commands.
    pub(super) fn handle_destroyed(&mut self, owner: &mut Owner, stream: u64) {
        if self.streams.remove(&stream) {
            self.of_destroyed.extend(owner.mark(stream));
        }
    }

    /// Becomes ready when fewer commands are unfinished than fill half of the room; the rest of it is for the runtime, whose
    /// calls would block. It may be another worker's client, whose room is as large.
    pub(super) fn poll(&mut self, owner: &mut Owner, sleeper: &mut Sleeper, room: Room) -> Poll<()> {
        let room = room.half();
        let part = Room { commands: room.commands.div_ceil(PARTS), bytes: room.bytes.div_ceil(PARTS as u64) };
        if !part.has_place_beside(self.unmarked.commands, self.unmarked.bytes) {
            self.mark(owner);
        }
        if room.has_place_beside(self.all.commands, self.all.bytes) {
            return Poll::Ready(());
        }
        self.collect(owner);
        if room.has_place_beside(self.all.commands, self.all.bytes) {
            sleeper.refresh();
            return Poll::Ready(());
        }
        sleeper.pending()
    }

    /// Sets markers behind the unmarked commands. A stream that cannot be marked counts as finished: its device is lost.
    fn mark(&mut self, owner: &mut Owner) {
        let mut markers = std::mem::take(&mut self.of_destroyed);
        markers.extend(
            std::mem::take(&mut self.streams).into_iter().filter_map(|stream| owner.mark(stream).ok()),
        );
        self.marked.push_back((markers, std::mem::take(&mut self.unmarked)));
    }

    /// Removes the commands before markers that are reached, or that cannot be asked about any more.
    fn collect(&mut self, owner: &mut Owner) {
        let is_passed =
            |markers: &Vec<Marker>| markers.iter().all(|marker| owner.is_reached(marker) != Ok(false));
        let passed = self.marked.iter().take_while(|(markers, _)| is_passed(markers)).count();
        for (markers, count) in self.marked.drain(..passed) {
            self.all.remove(count);
            markers.into_iter().for_each(|marker| owner.discard(marker));
        }
    }

    /// Forgets all commands, which are finished or will be released with everything else.
    pub(super) fn forget(&mut self, owner: &mut Owner) {
        let marked = std::mem::take(&mut self.marked).into_iter().flat_map(|(markers, _)| markers);
        let markers = marked.chain(std::mem::take(&mut self.of_destroyed));
        markers.for_each(|marker| owner.discard(marker));
        *self = Self::default();
    }
}
