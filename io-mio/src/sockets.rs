//! The readiness loop's [`Carrier`]: sockets in a poll.
//!
//! A connection whose socket can be read stays ready until it has used its budget or the kernel says "would block"; the loop
//! sleeps only when none is ready.

use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use hipr_io::{
    Carrier, Config, ConnId, Link, Listener, Mailbox, Peer, Pool, Read, Readiness, Table, WriteContext, tune,
};
use hipr_io_shm::{BusyPoller, Shared, SharedMemory, pass};
use mio::{Events, Interest, Poll, Token, Waker};
use tracing::info;

use crate::{Listen, Stream};

const LISTENER: Token = Token(usize::MAX);
const WAKE: Token = Token(usize::MAX - 1);

/// The sockets of one loop and their poll.
pub struct Sockets {
    poll: Poll,
    events: Events,
    listen: Option<Listen>,
    busy_poller: BusyPoller,
    /// The buffer that sockets are read into.
    buffer: Vec<u8>,
}

/// The socket of a connection.
pub struct Socket {
    stream: Stream,
    readiness: Readiness,
    /// Whether the connection failed in both directions, even if there are bytes to read.
    reset: bool,
    /// Whether its shared memory is looked at; else it rings.
    is_polled: bool,
}

impl Sockets {
    /// Creates the sockets of a loop that accepts from `listener`, if there is one, and the mailbox that wakes it.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn new(listener: Option<Listener>, config: &Config) -> io::Result<(Self, Mailbox)> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKE)?;
        let mailbox = Mailbox::new(move || {
            // The only failure is a full eventfd, and that wakes as well.
            let _ = waker.wake();
        });
        let listen = listener.map(|listener| Listen::new(listener, poll.registry(), LISTENER)).transpose()?;
        let (events, buffer) = (Events::with_capacity(1024), Pool::default().buffer());
        let busy_poller = BusyPoller::new(config.spin_us);
        Ok((Self { poll, events, listen, busy_poller, buffer }, mailbox))
    }
}

impl Socket {
    /// Passes the link's descriptor: with its next bytes, or with a bell. One that cannot be passed is dropped; the client sees that.
    fn pass(&mut self, link: &mut Link, context: WriteContext<'_>) {
        match &self.stream {
            Stream::Unix(stream) => {
                self.readiness.pass(link, context, |slices, descriptor| pass(stream, slices, descriptor));
            }
            Stream::Shm(served) => served.pass_from(link),
            Stream::Tcp(_) => drop(link.take_descriptor()),
        }
    }
}

impl SharedMemory for Socket {
    fn shared(&mut self) -> Option<Shared<'_>> {
        let Self { stream, readiness, is_polled, .. } = self;
        stream.shared().map(|served| Shared { served, readiness, is_polled })
    }
}

impl Carrier for Sockets {
    type Arrival = Stream;
    type Socket = Socket;

    fn wait(&mut self, timeout: Option<Duration>, table: &mut Table<Socket>) -> io::Result<()> {
        let timeout = self.busy_poller.poll(timeout, table);
        match self.poll.poll(&mut self.events, timeout) {
            Err(why) if why.kind() != ErrorKind::Interrupted => return Err(why),
            _ => {}
        }
        for event in &self.events {
            let slot = match event.token() {
                LISTENER => {
                    self.listen.iter_mut().for_each(Listen::handle_readable);
                    continue;
                }
                WAKE => continue,
                Token(slot) => u32::try_from(slot).ok(),
            };
            let Some((id, socket)) = slot.and_then(|slot| table.socket_at(slot)) else { continue };
            socket.readiness.readable |= event.is_readable() || event.is_read_closed();
            socket.readiness.writable |= event.is_writable();
            socket.reset |= socket.stream.is_reset(event);
            if let Err(why) = socket.stream.handle_readable() {
                info!(conn = %id, %why, "connection failed");
                socket.reset = true;
            }
            if event.is_read_closed() {
                socket.readiness.read_closed = true;
                table.handle_peer_closed(id);
            }
            table.make_ready(id);
        }
        Ok(())
    }

    fn is_listening(&self) -> bool {
        self.listen.is_some()
    }

    fn accept_at_ms(&self, now_ms: u64) -> Option<u64> {
        let listen = self.listen.as_ref()?;
        if listen.is_ready(now_ms) { Some(now_ms) } else { listen.retry_ms() }
    }

    fn accept(&mut self, now_ms: u64) -> Option<(Stream, Peer)> {
        self.listen.as_mut().and_then(|listen| listen.accept(now_ms))
    }

    fn handle_descriptor_free(&mut self) {
        self.listen.iter_mut().for_each(Listen::handle_descriptor_free);
    }

    fn open(&mut self, conn: ConnId, mut stream: Stream) -> io::Result<Socket> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut stream, Token(conn.slot() as usize), interest)?;
        Ok(Socket { stream, readiness: Readiness::new(), reset: false, is_polled: false })
    }

    fn adopt(&mut self, stream: hipr_io::Stream) -> io::Result<(Stream, Peer)> {
        let peer = stream.peer()?;
        tune(&stream, peer);
        Ok((Stream::new(stream)?, peer))
    }

    fn rebind(&mut self, socket: &mut Socket, conn: ConnId) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        socket.readiness.readable = true;
        self.poll.registry().reregister(&mut socket.stream, Token(conn.slot() as usize), interest)
    }

    fn failure(&mut self, socket: &mut Socket) -> Option<io::Error> {
        let why = || socket.stream.take_error().ok().flatten();
        socket.reset.then(|| why().unwrap_or_else(|| ErrorKind::ConnectionReset.into()))
    }

    fn write(&mut self, socket: &mut Socket, link: &mut Link, context: WriteContext<'_>) -> io::Result<()> {
        self.busy_poller.wake(link.conn(), socket);
        if link.descriptor().is_some() {
            socket.pass(link, context);
        }
        socket.readiness.write(&mut socket.stream, link, context)?;
        socket.readiness.say(&socket.stream, link)
    }

    fn tcp<'a>(&'a mut self, socket: &'a Socket) -> Option<BorrowedFd<'a>> {
        if let Stream::Tcp(stream) = &socket.stream { Some(stream.as_fd()) } else { None }
    }

    fn read<R>(
        &mut self,
        socket: &mut Socket,
        want_bytes: usize,
        pool: &mut Pool,
        take: impl FnOnce(&mut Vec<u8>, usize, &mut Pool) -> R,
    ) -> io::Result<Read<R>> {
        socket.readiness.read(&mut socket.stream, &mut self.buffer, want_bytes, pool, take)
    }

    fn pause(&mut self, _socket: &mut Socket) {}

    fn half_close(&mut self, socket: &mut Socket) {
        // If that fails the peer is gone, which reading tells.
        let _ = socket.stream.shutdown(Shutdown::Write);
        self.linger(socket);
    }

    fn linger(&mut self, socket: &mut Socket) {
        socket.readiness.readable = true;
    }

    fn close(&mut self, socket: Socket) {
        drop(socket);
    }
}
