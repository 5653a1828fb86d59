//! A connection through shared memory: its bells come through the ring, its bytes do not.

use std::io;
use std::os::fd::OwnedFd;

use hipr_io::{Link, Moment, Pool, Read, Readiness};
use hipr_io_shm::{Served, Shared, Shares};

/// What is kept of a connection.
#[derive(Debug)]
pub struct Socket {
    /// The number of the port whose socket it is, or whose bells.
    pub(crate) port: u32,
    /// Its end of shared memory, where that is what carries its bytes.
    pub(crate) memory: Option<Box<Memory>>,
}

/// One end of shared memory.
#[derive(Debug)]
pub(crate) struct Memory {
    served: Served,
    readiness: Readiness,
    looked_at: bool,
}

impl Shares for Socket {
    fn shared(&mut self) -> Option<Shared<'_>> {
        let Memory { served, readiness, looked_at } = self.memory.as_deref_mut()?;
        Some(Shared { served, readiness, looked_at })
    }
}

impl Memory {
    /// The end of a client that has connected to `control`.
    pub(crate) fn new(control: OwnedFd) -> Box<Self> {
        Box::new(Self { served: Served::new(control), readiness: Readiness::new(), looked_at: false })
    }

    /// The bell rang. `false`: it does so no more.
    ///
    /// # Errors
    /// The peer breaks the rules; those of the system.
    pub(crate) fn handle_bell(&mut self) -> io::Result<bool> {
        self.served.handle_bell()?;
        self.readiness.readable = true;
        self.readiness.read_closed = self.served.has_ended();
        Ok(!self.readiness.read_closed)
    }

    /// As [`Readiness::write`].
    pub(crate) fn write(&mut self, link: &mut Link, moment: Moment<'_>) -> io::Result<()> {
        self.readiness.write(&mut self.served, link, moment)
    }

    /// As [`Readiness::read`].
    pub(crate) fn read<R>(
        &mut self,
        buffer: &mut Vec<u8>,
        want_bytes: usize,
        pool: &mut Pool,
        take: impl FnOnce(&mut Vec<u8>, usize, &mut Pool) -> R,
    ) -> io::Result<Read<R>> {
        self.readiness.read(&mut self.served, buffer, want_bytes, pool, take)
    }

    /// The sending side is closed: what the peer still says is thrown away.
    pub(crate) fn handle_half_closed(&mut self) {
        self.readiness.readable = true;
    }
}
