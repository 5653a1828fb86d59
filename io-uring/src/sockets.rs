//! The completion loop's [`Carrier`]: sockets over io_uring.
//!
//! Completions are taken first, all of them; what they mean for a connection is done when the driver gives it its turn. A
//! port outlives its connection until the kernel has completed everything that it was asked to do with it.

use std::collections::VecDeque;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use hipr_io::{
    Backoff, Carrier, Config, ConnId, Link, Listener, Peer, Pool, Read, Slots, Stream, Table, WriteContext,
    tune,
};
use hipr_io_shm::BusyPoller;
use io_uring::types::{CancelBuilder, Fd};
use io_uring::{opcode, squeue};
use rustix::event::{EventfdFlags, eventfd};
use tracing::{error, info};

use crate::buffers::Buffers;
use crate::port::{Effect, Piece, Port, Sending};
use crate::ring::{Completion, Ring};
use crate::shared::{Memory, Socket};
use crate::token::{Op, Token};

/// How long cancelled requests may take to complete when the loop ends.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// The sockets of one loop and their io_uring.
pub struct Sockets {
    ring: Ring,
    /// Memory that the kernel may read or write; dropped only when no request is in flight.
    lent: ManuallyDrop<LentMemory>,
    enabled: bool,
    /// Number of requests in flight that belong to no connection: the accepts, the wake-up and cancellations.
    in_flight: u32,
    completions: Vec<Completion>,
    accepting: Option<Accepting>,
    wake_armed: bool,
    /// Numbers of the ports with a send that completes while it is submitted.
    at_once: Vec<u32>,
    /// Whether a connection has more to do behind such a send, so that the loop must not sleep with it.
    is_behind: bool,
    /// The busy poller of shared-memory connections.
    busy_poller: BusyPoller,
    /// The buffer that bulk data is read into.
    buffer: Vec<u8>,
}

/// Memory that requests in flight point to, and the descriptors that they use.
struct LentMemory {
    buffers: Buffers,
    ports: Slots<Port>,
    /// The event descriptor that other threads write to wake the loop.
    wake: Arc<OwnedFd>,
    /// The buffer that the event descriptor is read into.
    woken: Box<u64>,
}

/// The listening socket.
struct Accepting {
    listener: Listener,
    /// Whether an accept is in flight.
    armed: bool,
    arrivals: VecDeque<io::Result<OwnedFd>>,
    backoff: Backoff,
}

impl Sockets {
    /// Creates the sockets of a loop that accepts from `listener`, if there is one.
    ///
    /// # Errors
    /// io_uring cannot be used.
    pub(crate) fn new(listener: Option<Listener>, config: &Config) -> io::Result<Self> {
        let ring = Ring::new()?;
        let buffers = Buffers::new(&ring)?;
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let lent = LentMemory { buffers, ports: Slots::default(), wake, woken: Box::new(0) };
        let accepting = listener.map(|listener| Accepting {
            listener,
            armed: false,
            arrivals: VecDeque::new(),
            backoff: Backoff::default(),
        });
        Ok(Self {
            ring,
            lent: ManuallyDrop::new(lent),
            enabled: false,
            in_flight: 0,
            completions: Vec::new(),
            accepting,
            wake_armed: false,
            at_once: Vec::new(),
            is_behind: false,
            busy_poller: BusyPoller::new(config.spin_us),
            buffer: Pool::default().buffer(),
        })
    }

    /// Returns the event descriptor that wakes the loop when 8 bytes are written to it.
    pub(crate) fn wake(&self) -> Arc<OwnedFd> {
        self.lent.wake.clone()
    }

    /// Queues a request that belongs to no port.
    ///
    /// # Safety
    /// The memory that `entry` points to is part of `lent` and is not changed until the request completes.
    unsafe fn submit(&mut self, op: Op, entry: squeue::Entry) {
        self.in_flight += 1;
        // SAFETY: what the caller promises.
        unsafe { self.ring.push(Token::new(op, 0), entry) };
    }

    /// Binds the ring to this thread and submits the requests that are always in flight.
    fn arm(&mut self) -> io::Result<()> {
        if !self.enabled {
            self.ring.enable()?;
            self.enabled = true;
        }
        if !std::mem::replace(&mut self.wake_armed, true) {
            let into = (&raw mut *self.lent.woken).cast();
            let entry = opcode::Read::new(Fd(self.lent.wake.as_raw_fd()), into, 8).build();
            // SAFETY: nobody looks at the value.
            unsafe { self.submit(Op::Wake, entry) };
        }
        Ok(())
    }

    fn complete(&mut self, completion: Completion, table: &mut Table<Socket>) {
        let Token { op, port: number } = completion.token;
        match op {
            Op::Wake | Op::Accept | Op::CancelAll => {
                self.in_flight -= u32::from(!completion.more);
                self.wake_armed &= op != Op::Wake;
                if let Some(accepting) = self.accepting.as_mut().filter(|_| op == Op::Accept) {
                    accepting.armed = completion.more;
                    accepting.complete(completion.result());
                }
            }
            _ => {
                let LentMemory { buffers, ports, .. } = &mut *self.lent;
                let Some(port) = ports.at_mut(number) else { return };
                let mut effect = port.complete(completion, &mut self.ring, buffers);
                if effect == Effect::Bell {
                    effect = Self::handle_bell(port, &mut self.ring, table);
                }
                Self::report(ports, number, effect, table);
            }
        }
    }

    /// Handles the bell of a port; returns what it means for the connection.
    fn handle_bell(port: &mut Port, ring: &mut Ring, table: &mut Table<Socket>) -> Effect {
        let Some(conn) = port.conn else { return Effect::None };
        let Some(memory) = table.socket(conn).and_then(|socket| socket.memory.as_mut()) else {
            return Effect::None;
        };
        match memory.handle_bell() {
            Ok(true) => {
                port.await_bell(ring);
                Effect::Ready
            }
            Ok(false) => Effect::PeerClosed,
            Err(why) => {
                info!(%conn, %why, "connection failed");
                port.break_off();
                Effect::Ready
            }
        }
    }

    /// Reports a completion's effect to the port's connection, or drops the port of a closed connection if nothing is in
    /// flight.
    fn report(ports: &mut Slots<Port>, number: u32, effect: Effect, table: &mut Table<Socket>) {
        let Some(port) = ports.at_mut(number) else { return };
        match (port.conn, effect) {
            (Some(conn), Effect::Ready) => table.make_ready(conn),
            (Some(conn), Effect::PeerClosed) => table.handle_peer_closed(conn),
            (Some(_), Effect::None | Effect::Bell) => {}
            (None, _) if port.is_idle() => drop(ports.id_at(number).and_then(|id| ports.remove(id))),
            (None, _) => {}
        }
    }

    /// Returns the number of requests in flight.
    fn all_in_flight(&mut self) -> u32 {
        self.in_flight + self.lent.ports.iter_mut().map(|(_, port)| port.in_flight()).sum::<u32>()
    }

    /// Cancels all requests and waits until they complete. Returns false if they do not in time.
    fn drain(&mut self) -> bool {
        if !self.enabled {
            // The kernel was not told of anything.
            return true;
        }
        // SAFETY: it points to nothing.
        unsafe { self.submit(Op::CancelAll, opcode::AsyncCancel2::new(CancelBuilder::any()).build()) };
        let start = std::time::Instant::now();
        let mut completions = std::mem::take(&mut self.completions);
        while self.all_in_flight() > 0 && start.elapsed() < CANCEL_TIMEOUT {
            if self.ring.enter(Some(CANCEL_TIMEOUT)).is_err() {
                break;
            }
            self.ring.reap(&mut completions);
            for completion in completions.drain(..) {
                self.complete(completion, &mut Table::default());
            }
            self.complete_at_once(&mut Table::default());
        }
        self.all_in_flight() == 0
    }

    fn complete_at_once(&mut self, table: &mut Table<Socket>) {
        if self.ring.is_submitted() {
            self.is_behind = false;
            for number in self.at_once.drain(..) {
                let ports = &mut self.lent.ports;
                let effect = ports.at_mut(number).map_or(Effect::None, Port::complete_at_once);
                Self::report(ports, number, effect, table);
            }
        }
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        if self.drain() {
            // SAFETY: nothing is in flight, and this is not used any more.
            unsafe { ManuallyDrop::drop(&mut self.lent) };
        } else {
            error!(
                "io_uring requests were not cancelled in time; leaking the buffers that the kernel may still use"
            );
        }
    }
}

impl Carrier for Sockets {
    type Arrival = Stream;
    type Socket = Socket;

    fn wait(&mut self, timeout: Option<Duration>, table: &mut Table<Socket>) -> io::Result<()> {
        let timeout = if self.is_behind { Some(Duration::ZERO) } else { timeout };
        let timeout = self.busy_poller.poll(timeout, table);
        self.arm()?;
        self.ring.enter(timeout)?;
        let mut completions = std::mem::take(&mut self.completions);
        self.ring.reap(&mut completions);
        for completion in completions.drain(..) {
            self.complete(completion, table);
        }
        self.completions = completions;
        self.complete_at_once(table);
        Ok(())
    }

    fn is_listening(&self) -> bool {
        self.accepting.is_some()
    }

    fn accept_at_ms(&self, now_ms: u64) -> Option<u64> {
        let accepting = self.accepting.as_ref()?;
        let at_once = !accepting.arrivals.is_empty();
        (at_once || !accepting.armed)
            .then(|| accepting.backoff.retry_ms().filter(|_| !at_once).unwrap_or(now_ms))
    }

    fn accept(&mut self, now_ms: u64) -> Option<(Stream, Peer)> {
        let accepting = self.accepting.as_mut()?;
        while let Some(arrival) = accepting.arrivals.pop_front() {
            match arrival.and_then(|arrival| accepting.admit(arrival)) {
                Ok(admitted) => {
                    accepting.backoff.handle_accepted();
                    return Some(admitted);
                }
                Err(why) => accepting.backoff.handle_error(&why, now_ms),
            }
        }
        if !accepting.armed && accepting.backoff.is_over(now_ms) {
            accepting.armed = true;
            let fd = Fd(accepting.listener.as_fd().as_raw_fd());
            // SAFETY: it points to nothing.
            unsafe {
                self.submit(Op::Accept, opcode::AcceptMulti::new(fd).flags(libc::SOCK_CLOEXEC).build())
            };
        }
        None
    }

    fn handle_descriptor_free(&mut self) {
        self.accepting.iter_mut().for_each(|accepting| accepting.backoff.handle_descriptor_free());
    }

    fn open(&mut self, conn: ConnId, stream: Stream) -> io::Result<Socket> {
        let memory = match &stream {
            Stream::Shm(control) => Some(Memory::new(control.try_clone()?.into())),
            Stream::Tcp(_) | Stream::Unix(_) => None,
        };
        let id = self.lent.ports.try_insert(|id| Ok(Port::new(id.slot(), stream, conn)))?;
        if let Some(port) = self.lent.ports.get_mut(id).filter(|_| memory.is_some()) {
            port.await_bell(&mut self.ring);
        }
        Ok(Socket { port: id.slot(), memory })
    }

    fn adopt(&mut self, stream: Stream) -> io::Result<(Stream, Peer)> {
        stream.set_nonblocking(false)?;
        let peer = stream.peer()?;
        tune(&stream, peer);
        Ok((stream, peer))
    }

    fn rebind(&mut self, socket: &mut Socket, conn: ConnId) -> io::Result<()> {
        if let Some(port) = self.lent.ports.at_mut(socket.port) {
            port.conn = Some(conn);
        }
        Ok(())
    }

    fn failure(&mut self, socket: &mut Socket) -> Option<io::Error> {
        self.lent.ports.at_mut(socket.port)?.failure()
    }

    fn write(&mut self, socket: &mut Socket, link: &mut Link, context: WriteContext<'_>) -> io::Result<()> {
        self.busy_poller.wake(link.conn(), socket);
        if let Some(memory) = &mut socket.memory {
            return memory.write(link, context);
        }
        let Some(port) = self.lent.ports.at_mut(socket.port) else { return Ok(()) };
        match port.send(&mut self.ring, link, context)? {
            Sending::Nothing => {}
            Sending::AtOnce => self.at_once.push(socket.port),
            Sending::Behind => self.is_behind = true,
        }
        Ok(())
    }

    fn tcp<'a>(&'a mut self, socket: &'a Socket) -> Option<BorrowedFd<'a>> {
        self.lent.ports.at_mut(socket.port)?.tcp()
    }

    fn read<R>(
        &mut self,
        socket: &mut Socket,
        want_bytes: usize,
        pool: &mut Pool,
        take: impl FnOnce(&mut Vec<u8>, usize, &mut Pool) -> R,
    ) -> io::Result<Read<R>> {
        if let Some(memory) = &mut socket.memory {
            return memory.read(&mut self.buffer, want_bytes, pool, take);
        }
        let LentMemory { buffers, ports, .. } = &mut *self.lent;
        let Some(port) = ports.at_mut(socket.port) else { return Ok(Read::Nothing) };
        match port.next() {
            Some(Piece::Lent(buffer, len)) => {
                let Some(bytes) = buffers.filled(buffer) else { return Ok(Read::Nothing) };
                let taken = take(bytes, len, pool);
                buffers.offer(buffer);
                Ok(Read::Bytes(len, taken))
            }
            Some(Piece::Own(mut bytes)) => {
                let len = bytes.len();
                Ok(Read::Bytes(len, take(&mut bytes, len, pool)))
            }
            Some(Piece::End) => Ok(Read::End),
            Some(Piece::Failed(why)) => Err(why),
            None => {
                let read = port.read_bulk(&mut self.buffer, want_bytes, pool, take)?;
                if matches!(read, Read::Nothing) {
                    port.receive(&mut self.ring);
                }
                Ok(read)
            }
        }
    }

    fn pause(&mut self, socket: &mut Socket) {
        let LentMemory { buffers, ports, .. } = &mut *self.lent;
        // A bell is heard all the time.
        if let Some(port) = ports.at_mut(socket.port).filter(|_| socket.memory.is_none()) {
            port.pause(&mut self.ring, buffers);
        }
    }

    fn half_close(&mut self, socket: &mut Socket) {
        if let Some(port) = self.lent.ports.at_mut(socket.port) {
            port.half_close();
        }
        socket.memory.iter_mut().for_each(|memory| memory.handle_half_closed());
    }

    fn close(&mut self, Socket { port: number, memory: _ }: Socket) {
        let LentMemory { buffers, ports, .. } = &mut *self.lent;
        if let Some(port) = ports.at_mut(number) {
            port.close(&mut self.ring, buffers);
            if port.is_idle() {
                drop(ports.id_at(number).and_then(|id| ports.remove(id)));
            }
        }
    }
}

impl Accepting {
    fn complete(&mut self, accepted: io::Result<usize>) {
        match accepted.map(i32::try_from) {
            // SAFETY: the kernel made this descriptor for us.
            Ok(Ok(fd)) => self.arrivals.push_back(Ok(unsafe { OwnedFd::from_raw_fd(fd) })),
            Ok(Err(_)) => {}
            Err(why) if why.raw_os_error() == Some(libc::ECANCELED) => {}
            Err(why) => self.arrivals.push_back(Err(why)),
        }
    }

    fn admit(&self, arrival: OwnedFd) -> io::Result<(Stream, Peer)> {
        let stream = match &self.listener {
            Listener::Tcp(_) => Stream::Tcp(arrival.into()),
            Listener::Unix(..) => Stream::Unix(arrival.into()),
            Listener::Shm(..) => Stream::Shm(arrival.into()),
        };
        // One that is gone already says so when it is read.
        let peer = stream.peer()?;
        tune(&stream, peer);
        Ok((stream, peer))
    }
}
