//! Launches of graphs whose kernels are of several devices.
//!
//! A kernel's node runs on the device whose function it names, in the order of the stream on which the graph is launched: on a stream of this
//! library beside that one, with an event before it and one behind it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::mem;
use std::sync::Mutex;

use hipr_proto::HipResult;

use crate::command::{Command, Node};
use crate::stream::{Call, Streams};
use crate::worker::{Port, lock};

/// The streams on which kernels of other devices are launched, by the stream that they belong to, and the device.
#[derive(Debug, Default)]
pub(in crate::stream) struct Sides(Mutex<HashMap<(u64, i32), u64>>);

impl Sides {
    /// Forgets all streams, because the devices were reset.
    pub(in crate::stream) fn clear(&self) {
        lock(&self.0).clear();
    }

    /// Removes the streams that belong to one; the caller destroys them.
    fn take(&self, stream: u64) -> Vec<u64> {
        lock(&self.0).extract_if(|(of, _), _| *of == stream).map(|(_, side)| side).collect()
    }
}

impl Streams {
    /// Returns the calls that destroy the streams beside one that is destroyed.
    pub fn end_sides(&self, stream: u64) -> Vec<Call> {
        let sides = self.sides.take(stream).into_iter();
        sides.map(|side| Call::new(Command::DestroyStream, side, false)).collect()
    }

    /// Returns the device on which a node has to run, if that is another one than a stream's.
    pub(in crate::stream) fn other_device(&self, command: &Command, stream: u64) -> Option<i32> {
        let Command::Kernel(kernel) = command else { return None };
        Some(kernel.function.device).filter(|device| *device != self.order.device_of(stream))
    }

    /// Returns the calls that launch nodes one after the other, each on its device.
    ///
    /// # Errors
    /// What a worker answers.
    pub(super) fn call_each(
        &self,
        port: &dyn Port,
        nodes: impl Iterator<Item = Node>,
        stream: u64,
    ) -> HipResult<Vec<Call>> {
        let mut calls = Vec::new();
        let mut now = stream;
        for node in nodes {
            let next = match self.other_device(&node, stream) {
                Some(device) => self.side(port, stream, device)?,
                None => stream,
            };
            self.go_on(port, &mut calls, mem::replace(&mut now, next), next)?;
            calls.push(Call::node(node, next));
        }
        self.go_on(port, &mut calls, now, stream)?;
        Ok(calls)
    }

    fn side(&self, port: &dyn Port, stream: u64, device: i32) -> HipResult<u64> {
        match lock(&self.sides.0).entry((stream, device)) {
            Entry::Occupied(known) => Ok(*known.get()),
            Entry::Vacant(place) => Ok(*place.insert(self.create_own_stream(port, device)?)),
        }
    }

    /// Adds the calls by which what is put on the stream `to` comes behind what is on `from`.
    fn go_on(&self, port: &dyn Port, calls: &mut Vec<Call>, from: u64, to: u64) -> HipResult<()> {
        if from == to {
            return Ok(());
        }
        let event = self.create_own_event(port, self.order.device_of(from))?;
        for (command, stream) in [
            (Command::Record(event), from),
            (Command::Wait(event, 0), to),
            (Command::DestroyEvent(event), to),
        ] {
            calls.push(Call::node(Node::new(command), stream));
        }
        Ok(())
    }
}
