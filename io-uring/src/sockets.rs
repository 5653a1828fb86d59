//! Sockets over io_uring, for the driver of all loops.
//!
//! Completions are taken first, all of them; what they mean for a connection is done when the driver gives it its turn. A
//! port outlives its connection until the kernel has completed everything that it was asked to do with it.

use std::collections::VecDeque;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use hipr_io::{
    Backoff, Carrier, Config, ConnId, Link, Listener, Moment, Peer, Pool, Read, Slots, Stream, Table, tune,
};
use hipr_io_shm::Lookout;
use io_uring::types::{CancelBuilder, Fd};
use io_uring::{opcode, squeue};
use rustix::event::{EventfdFlags, eventfd};
use tracing::{error, info};

use crate::buffers::Buffers;
use crate::port::{News, Piece, Port};
use crate::ring::{Completion, Ring};
use crate::shared::{Memory, Socket};
use crate::token::{Op, Token};

/// How long the kernel may take to cancel what it was asked for, when the loop ends.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// The sockets of one loop, and its io_uring.
pub struct Sockets {
    ring: Ring,
    /// What the kernel may read or write: dropped only when nothing is in flight.
    kernels: ManuallyDrop<Kernels>,
    enabled: bool,
    /// Requests of no port that have not completed.
    in_flight: u32,
    completions: Vec<Completion>,
    door: Option<Door>,
    wake_armed: bool,
    /// Ports with a send that completes as it is submitted.
    at_once: Vec<u32>,
    /// Connections through shared memory.
    lookout: Lookout,
    /// The buffer that bulk is read into.
    buffer: Vec<u8>,
}

/// Memory that requests point to, and the descriptors that they name.
struct Kernels {
    buffers: Buffers,
    ports: Slots<Port>,
    /// Other threads write to it to wake the loop.
    wake: Arc<OwnedFd>,
    /// What is read from it.
    woken: Box<u64>,
}

/// Where connections come from.
struct Door {
    listener: Listener,
    /// The kernel accepts.
    armed: bool,
    arrivals: VecDeque<io::Result<OwnedFd>>,
    backoff: Backoff,
}

impl Sockets {
    /// Sockets of a loop that accepts from `listener`, if there is one.
    ///
    /// # Errors
    /// io_uring cannot be had.
    pub(crate) fn new(listener: Option<Listener>, config: &Config) -> io::Result<Self> {
        let ring = Ring::new()?;
        let buffers = Buffers::new(&ring)?;
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let kernels = Kernels { buffers, ports: Slots::default(), wake, woken: Box::new(0) };
        let door = listener.map(|listener| Door {
            listener,
            armed: false,
            arrivals: VecDeque::new(),
            backoff: Backoff::default(),
        });
        Ok(Self {
            ring,
            kernels: ManuallyDrop::new(kernels),
            enabled: false,
            in_flight: 0,
            completions: Vec::new(),
            door,
            wake_armed: false,
            at_once: Vec::new(),
            lookout: Lookout::new(config.spin_us),
            buffer: Pool::default().buffer(),
        })
    }

    /// What other threads write 8 bytes to, to wake the loop.
    pub(crate) fn wake(&self) -> Arc<OwnedFd> {
        self.kernels.wake.clone()
    }

    /// # Safety
    /// What `entry` points to belongs to the kernel's share and stays as it is until the request completed.
    unsafe fn submit(&mut self, op: Op, entry: squeue::Entry) {
        self.in_flight += 1;
        // SAFETY: what the caller promises.
        unsafe { self.ring.push(Token::new(op, 0), entry) };
    }

    /// Binds the ring to this thread, and asks it for what has to be asked for always.
    fn arm(&mut self) -> io::Result<()> {
        if !self.enabled {
            self.ring.enable()?;
            self.enabled = true;
        }
        if !std::mem::replace(&mut self.wake_armed, true) {
            let into = (&raw mut *self.kernels.woken).cast();
            let entry = opcode::Read::new(Fd(self.kernels.wake.as_raw_fd()), into, 8).build();
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
                if let Some(door) = self.door.as_mut().filter(|_| op == Op::Accept) {
                    door.armed = completion.more;
                    door.complete(completion.result());
                }
            }
            _ => {
                let Kernels { buffers, ports, .. } = &mut *self.kernels;
                let Some(port) = ports.at_mut(number) else { return };
                let mut news = port.complete(completion, &mut self.ring, buffers);
                if news == News::Bell {
                    news = Self::hear(port, &mut self.ring, table);
                }
                Self::tell(ports, number, news, table);
            }
        }
    }

    /// The bell of a port rang: what that means for its connection.
    fn hear(port: &mut Port, ring: &mut Ring, table: &mut Table<Socket>) -> News {
        let Some(conn) = port.conn else { return News::None };
        let Some(memory) = table.socket(conn).and_then(|socket| socket.memory.as_mut()) else {
            return News::None;
        };
        match memory.handle_bell() {
            Ok(true) => {
                port.await_bell(ring);
                News::Ready
            }
            Ok(false) => News::PeerClosed,
            Err(why) => {
                info!(%conn, %why, "the connection fails");
                port.break_off();
                News::Ready
            }
        }
    }

    /// Passes news of a port on to its connection, or frees the port if nothing is in flight for one that is gone.
    fn tell(ports: &mut Slots<Port>, number: u32, news: News, table: &mut Table<Socket>) {
        let Some(port) = ports.at_mut(number) else { return };
        match (port.conn, news) {
            (Some(conn), News::Ready) => table.make_ready(conn),
            (Some(conn), News::PeerClosed) => table.handle_peer_closed(conn),
            (Some(_), News::None | News::Bell) => {}
            (None, _) if port.is_idle() => drop(ports.id_at(number).and_then(|id| ports.remove(id))),
            (None, _) => {}
        }
    }

    /// Requests that the kernel has.
    fn all_in_flight(&mut self) -> u32 {
        self.in_flight + self.kernels.ports.iter_mut().map(|(_, port)| port.in_flight()).sum::<u32>()
    }

    /// Cancels everything and waits for that. `false`: it did not come to an end.
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
            for number in self.at_once.drain(..) {
                let ports = &mut self.kernels.ports;
                let news = ports.at_mut(number).map_or(News::None, Port::complete_at_once);
                Self::tell(ports, number, news, table);
            }
        }
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        if self.drain() {
            // SAFETY: nothing is in flight, and this is not used any more.
            unsafe { ManuallyDrop::drop(&mut self.kernels) };
        } else {
            error!("the kernel did not give buffers back: they are left to it");
        }
    }
}

impl Carrier for Sockets {
    type Arrival = Stream;
    type Socket = Socket;

    fn wait(&mut self, timeout: Option<Duration>, table: &mut Table<Socket>) -> io::Result<()> {
        let timeout = self.lookout.look(timeout, table);
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
        self.door.is_some()
    }

    fn accept_at_ms(&self, now_ms: u64) -> Option<u64> {
        let door = self.door.as_ref()?;
        let at_once = !door.arrivals.is_empty();
        (at_once || !door.armed).then(|| door.backoff.retry_ms().filter(|_| !at_once).unwrap_or(now_ms))
    }

    fn accept(&mut self, now_ms: u64) -> Option<(Stream, Peer)> {
        let door = self.door.as_mut()?;
        while let Some(arrival) = door.arrivals.pop_front() {
            match arrival.and_then(|arrival| door.admit(arrival)) {
                Ok(admitted) => {
                    door.backoff.handle_accepted();
                    return Some(admitted);
                }
                Err(why) => door.backoff.handle_error(&why, now_ms),
            }
        }
        if !door.armed && door.backoff.is_over(now_ms) {
            door.armed = true;
            let fd = Fd(door.listener.as_fd().as_raw_fd());
            // SAFETY: it points to nothing.
            unsafe {
                self.submit(Op::Accept, opcode::AcceptMulti::new(fd).flags(libc::SOCK_CLOEXEC).build())
            };
        }
        None
    }

    fn handle_descriptor_free(&mut self) {
        self.door.iter_mut().for_each(|door| door.backoff.handle_descriptor_free());
    }

    fn open(&mut self, conn: ConnId, stream: Stream) -> io::Result<Socket> {
        let memory = match &stream {
            Stream::Shm(control) => Some(Memory::new(control.try_clone()?.into())),
            Stream::Tcp(_) | Stream::Unix(_) => None,
        };
        let id = self.kernels.ports.try_insert(|id| Ok(Port::new(id.slot(), stream, conn)))?;
        if let Some(port) = self.kernels.ports.get_mut(id).filter(|_| memory.is_some()) {
            port.await_bell(&mut self.ring);
        }
        Ok(Socket { port: id.slot(), memory })
    }

    fn failure(&mut self, socket: &mut Socket) -> Option<io::Error> {
        self.kernels.ports.at_mut(socket.port)?.failure()
    }

    fn write(&mut self, socket: &mut Socket, link: &mut Link, moment: Moment<'_>) -> io::Result<()> {
        self.lookout.wake(link.conn(), socket);
        if let Some(memory) = &mut socket.memory {
            return memory.write(link, moment);
        }
        let Some(port) = self.kernels.ports.at_mut(socket.port) else { return Ok(()) };
        if port.send(&mut self.ring, link, moment)? {
            self.at_once.push(socket.port);
        }
        Ok(())
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
        let Kernels { buffers, ports, .. } = &mut *self.kernels;
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
        let Kernels { buffers, ports, .. } = &mut *self.kernels;
        // A bell is heard all the time.
        if let Some(port) = ports.at_mut(socket.port).filter(|_| socket.memory.is_none()) {
            port.pause(&mut self.ring, buffers);
        }
    }

    fn half_close(&mut self, socket: &mut Socket) {
        if let Some(port) = self.kernels.ports.at_mut(socket.port) {
            port.half_close();
        }
        socket.memory.iter_mut().for_each(|memory| memory.handle_half_closed());
    }

    fn close(&mut self, Socket { port: number, memory: _ }: Socket) {
        let Kernels { buffers, ports, .. } = &mut *self.kernels;
        if let Some(port) = ports.at_mut(number) {
            port.close(&mut self.ring, buffers);
            if port.is_idle() {
                drop(ports.id_at(number).and_then(|id| ports.remove(id)));
            }
        }
    }
}

impl Door {
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
