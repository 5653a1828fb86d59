//! A shared-memory connection in the completion loop: its bells arrive through the ring, its bytes do not.

use std::io;
use std::os::fd::OwnedFd;

use hipr_io::{Link, Pool, Read, Readiness, WriteContext};
use hipr_io_shm::{Served, Shared, SharedMemory};

/// The state that the loop keeps for a connection.
#[derive(Debug)]
pub struct Socket {
    /// The number of the port of its socket, or of its control socket.
    pub(crate) port: u32,
    /// The worker's end of the shared memory, if the connection uses it.
    pub(crate) memory: Option<Box<Memory>>,
}

/// The worker's end of a connection's shared memory.
#[derive(Debug)]
pub(crate) struct Memory {
    served: Served,
    readiness: Readiness,
    is_polled: bool,
}

impl SharedMemory for Socket {
    fn shared(&mut self) -> Option<Shared<'_>> {
        let Memory { served, readiness, is_polled } = self.memory.as_deref_mut()?;
        Some(Shared { served, readiness, is_polled })
    }
}

impl Memory {
    /// Creates the worker's end for a client that has connected to `control`.
    pub(crate) fn new(control: OwnedFd) -> Box<Self> {
        Box::new(Self { served: Served::new(control), readiness: Readiness::new(), is_polled: false })
    }

    /// Handles the bell. Returns false if the client will not ring again.
    ///
    /// # Errors
    /// The peer breaks the rules; those of the system.
    pub(crate) fn handle_bell(&mut self) -> io::Result<bool> {
        self.served.handle_bell()?;
        self.readiness.readable = true;
        self.readiness.read_closed = self.served.has_ended();
        Ok(!self.readiness.read_closed)
    }

    /// Writes like [`Readiness::write`].
    pub(crate) fn write(&mut self, link: &mut Link, context: WriteContext<'_>) -> io::Result<()> {
        self.served.pass_from(link);
        self.readiness.write(&mut self.served, link, context)
    }

    /// Reads like [`Readiness::read`].
    pub(crate) fn read<R>(
        &mut self,
        buffer: &mut Vec<u8>,
        want_bytes: usize,
        pool: &mut Pool,
        take: impl FnOnce(&mut Vec<u8>, usize, &mut Pool) -> R,
    ) -> io::Result<Read<R>> {
        self.readiness.read(&mut self.served, buffer, want_bytes, pool, take)
    }

    /// Discards further input, because the sending side is closed.
    pub(crate) fn handle_half_closed(&mut self) {
        self.readiness.readable = true;
    }
}
