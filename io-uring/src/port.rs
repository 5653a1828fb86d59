//! A socket and the io_uring requests that are in flight for it.
//!
//! A port is asked for things by its methods, and hears of them by [`Port::complete`]. Everything that a request points to
//! belongs to the port: as long as one is [in flight](Port::is_idle), the port must not be dropped.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use hipr_io::{ConnId, Link, Output, Pool, Read, Readiness, Stream, WriteContext, gather, send_alert};
use hipr_io_shm::pass;
use io_uring::types::Fd;
use io_uring::{opcode, squeue};
use rustix::net::RecvFlags;
use socket2::SockRef;

use crate::buffers::{self, Buffers};
use crate::ring::{Completion, Ring, cancel, cancel_all};
use crate::token::{Op, Token};

/// Maximum number of slices in one vectored send.
const SLICES: usize = 64;
/// Size in bytes up to which a reply is sent with a request that completes while it is submitted, if the socket accepts it
/// at once.
const AT_ONCE_BYTES: usize = 16 * 1024;
/// Number of receive buffers filled to the end in a row that count as bulk data.
const BULK_BUFFERS: u32 = 2;

/// A socket with all memory that the kernel may read or write for it.
pub(crate) struct Port {
    number: u32,
    stream: Stream,
    /// The connection; `None` after it was closed.
    pub(crate) conn: Option<ConnId>,
    /// Number of requests that have not completed.
    in_flight: u32,
    /// Pieces that have arrived and were not taken.
    inbox: VecDeque<Piece>,
    receive: Receive,
    /// Number of receive buffers filled to the end in a row.
    filled: u32,
    /// Whether bulk data arrives. It is then read directly when the kernel reports it, and occupies no receive buffer until
    /// then.
    bulk: bool,
    /// What the socket can do now, while bulk data arrives.
    input: Readiness,
    /// The bytes that are being sent, and those that follow.
    output: Output,
    /// The arguments of a send of more than one slice.
    message: Option<Box<Message>>,
    send: Send,
    watch: Watch,
    /// Whether the peer is gone in both directions.
    broken: bool,
}

/// A piece of input.
#[derive(Debug)]
pub(crate) enum Piece {
    /// Bytes in a receive buffer: its number, and how many.
    Lent(u16, usize),
    /// Bytes that were moved out of their receive buffer.
    Own(Vec<u8>),
    /// The peer closed its sending side.
    End,
    /// The socket failed.
    Failed(io::Error),
}

/// The state of receiving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receive {
    Off,
    /// A multishot receive into receive buffers is in flight.
    Multi,
    /// Not receiving; a request waits until there is something to read.
    Waiting,
    /// The receive is being cancelled.
    Stopping,
}

/// The state of sending.
#[derive(Debug)]
enum Send {
    Idle,
    /// The socket is full; a request waits until it has room.
    Waiting,
    /// A send of this many bytes is in flight, which succeeds or fails while it is submitted.
    AtOnce(usize),
    Done(io::Result<usize>),
}

/// What the loop has to do after [`Port::send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    /// Nothing: a completion tells when there is more to do.
    Nothing,
    /// Call [`Port::complete_at_once`] when the send is submitted: it completes without telling so.
    AtOnce,
    /// Submit the send that is in flight without waiting for anything else: the connection has more to do behind it.
    Behind,
}

/// What is watched for while nothing is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watch {
    /// Nothing yet.
    Off,
    /// The peer closing its sending side, or a failure.
    Ending,
    /// Nothing: the peer has closed its sending side.
    Ended,
    /// The peer being gone in both directions.
    Breaking,
    /// Nothing any more.
    Over,
}

/// The arguments of a vectored send, which the kernel may read until it completes.
struct Message {
    slices: [libc::iovec; SLICES],
    header: libc::msghdr,
}

// SAFETY: the pointers in it are followed by the kernel only.
unsafe impl std::marker::Send for Message {}

impl Message {
    fn new() -> Box<Self> {
        let none = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        // SAFETY: a header of zeros has no address, no slices and no control data.
        let header = unsafe { std::mem::zeroed() };
        Box::new(Self { slices: [none; SLICES], header })
    }

    /// Sets the slices to send, or as many as fit; returns their length in bytes.
    fn fill<'a>(&mut self, slices: impl Iterator<Item = &'a [u8]>) -> usize {
        let (mut count, mut len) = (0, 0);
        for (place, slice) in self.slices.iter_mut().zip(slices) {
            *place = libc::iovec { iov_base: slice.as_ptr().cast_mut().cast(), iov_len: slice.len() };
            count += 1;
            len += slice.len();
        }
        self.header.msg_iov = self.slices.as_mut_ptr();
        self.header.msg_iovlen = count;
        len
    }
}

/// Reads a socket without blocking. The socket itself is in blocking mode, because requests in flight wait on it.
struct NonBlocking<'a>(&'a Stream);

impl io::Read for NonBlocking<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::net::recv(self.0, buffer, RecvFlags::DONTWAIT)?.0)
    }
}

/// What a completion means for its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing.
    None,
    /// The connection is ready.
    Ready,
    /// The peer closed its sending side.
    PeerClosed,
    /// The bell of its shared memory rang.
    Bell,
}

impl Port {
    /// Creates a port without requests in flight.
    pub(crate) fn new(number: u32, stream: Stream, conn: ConnId) -> Self {
        Self {
            number,
            stream,
            conn: Some(conn),
            in_flight: 0,
            inbox: VecDeque::new(),
            receive: Receive::Off,
            filled: 0,
            bulk: false,
            input: Readiness::new(),
            output: Output::default(),
            message: None,
            send: Send::Idle,
            watch: Watch::Off,
            broken: false,
        }
    }

    /// Returns the number of requests that have not completed.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Returns whether no request is in flight, so that the port can be dropped.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight == 0
    }

    fn raw_fd(&self) -> RawFd {
        self.stream.as_fd().as_raw_fd()
    }

    /// Queues a request of this port.
    ///
    /// # Safety
    /// The memory that `entry` points to belongs to this port and is not changed until the request completes.
    unsafe fn submit(&mut self, ring: &mut Ring, op: Op, entry: squeue::Entry) {
        self.in_flight += 1;
        // SAFETY: what the caller promises; the descriptor is open as long as the port lives.
        unsafe { ring.push(Token::new(op, self.number), entry) };
    }

    /// Returns the socket of a TCP connection.
    pub(crate) fn tcp(&self) -> Option<BorrowedFd<'_>> {
        if let Stream::Tcp(stream) = &self.stream { Some(stream.as_fd()) } else { None }
    }

    // ---- completions -------------------------------------------------------------------------------------------------

    /// Handles a completion of one of the port's requests.
    pub(crate) fn complete(
        &mut self,
        completion: Completion,
        ring: &mut Ring,
        buffers: &mut Buffers,
    ) -> Effect {
        if !completion.more {
            self.in_flight -= 1;
        }
        match completion.token.op {
            Op::Receive => self.complete_receive(completion, ring, buffers),
            Op::Input => {
                self.receive = Receive::Off;
                self.input.readable = true;
                Effect::Ready
            }
            Op::Send => {
                self.send = Send::Done(completion.result());
                Effect::Ready
            }
            Op::Room => {
                self.send = Send::Idle;
                Effect::Ready
            }
            Op::Watch => self.complete_watch(completion.result()),
            Op::Bell => {
                self.broken |= completion.result().unwrap_or_default() & libc::POLLERR as usize != 0;
                Effect::Bell
            }
            Op::Wake | Op::Accept | Op::Cancel | Op::CancelAll => Effect::None,
        }
    }

    fn complete_receive(&mut self, completion: Completion, ring: &mut Ring, buffers: &mut Buffers) -> Effect {
        if !completion.more {
            self.receive = Receive::Off;
        }
        match (completion.result(), completion.buffer) {
            (Ok(len @ 1..), Some(buffer)) if self.conn.is_some() => {
                self.inbox.push_back(Piece::Lent(buffer, len));
                self.filled = if len == buffers::LEN_BYTES { self.filled + 1 } else { 0 };
                if self.filled >= BULK_BUFFERS {
                    self.bulk = true;
                    self.input.readable = true;
                    self.stop_receiving(ring);
                }
            }
            (result, buffer) => {
                buffer.into_iter().for_each(|buffer| buffers.offer(buffer));
                self.file(result);
            }
        }
        Effect::Ready
    }

    /// Adds a failed or empty receive to the input.
    fn file(&mut self, result: io::Result<usize>) {
        match result {
            Ok(0) => self.inbox.push_back(Piece::End),
            Ok(_) => {}
            Err(why) => match why.raw_os_error() {
                // Nothing happened to the socket; it is asked again when something is wanted.
                Some(libc::ENOBUFS | libc::ECANCELED | libc::EINTR | libc::EAGAIN) => {}
                _ => self.inbox.push_back(Piece::Failed(why)),
            },
        }
    }

    fn complete_watch(&mut self, result: io::Result<usize>) -> Effect {
        // A unix socket is closed for writing as soon as the peer closed it in order; what the peer said before counts.
        let is_tcp = matches!(self.stream, Stream::Tcp(_));
        let fatal = if is_tcp { libc::POLLERR | libc::POLLHUP } else { libc::POLLERR };
        let events = result.unwrap_or_default();
        self.broken = events & fatal as usize != 0;
        let ended = events & (libc::POLLRDHUP | libc::POLLHUP) as usize != 0;
        self.watch = match self.watch {
            _ if self.broken => Watch::Over,
            Watch::Ending if ended && is_tcp => Watch::Ended,
            Watch::Ending if !ended => Watch::Off,
            _ => Watch::Over,
        };
        match (self.broken, ended) {
            (true, _) => Effect::Ready,
            (false, true) => Effect::PeerClosed,
            (false, false) => Effect::None,
        }
    }

    /// Handles a send that had to complete while it was submitted: unless its failure was reported, the bytes are sent.
    pub(crate) fn complete_at_once(&mut self) -> Effect {
        if let Send::AtOnce(len) = self.send {
            self.in_flight -= 1;
            self.send = Send::Done(Ok(len));
        }
        Effect::Ready
    }

    // ---- receiving ---------------------------------------------------------------------------------------------------

    /// Returns the next piece of input.
    pub(crate) fn next(&mut self) -> Option<Piece> {
        self.inbox.pop_front()
    }

    /// Starts receiving again.
    pub(crate) fn receive(&mut self, ring: &mut Ring) {
        if self.receive != Receive::Off {
            return;
        }
        let fd = Fd(self.raw_fd());
        let (receive, op, entry) = if self.bulk {
            (Receive::Waiting, Op::Input, opcode::PollAdd::new(fd, libc::POLLIN as u32).build())
        } else {
            (Receive::Multi, Op::Receive, opcode::RecvMulti::new(fd, buffers::GROUP).build())
        };
        self.receive = receive;
        // SAFETY: it points to nothing; the buffers of the ring live as long as the ring.
        unsafe { self.submit(ring, op, entry) };
    }

    /// Reads bulk data into `buffer`, like [`Readiness::read`].
    ///
    /// # Errors
    /// The socket's.
    pub(crate) fn read_bulk<R>(
        &mut self,
        buffer: &mut Vec<u8>,
        want_bytes: usize,
        pool: &mut Pool,
        take: impl FnOnce(&mut Vec<u8>, usize, &mut Pool) -> R,
    ) -> io::Result<Read<R>> {
        if !self.bulk || self.receive != Receive::Off {
            return Ok(Read::Nothing);
        }
        let read = self.input.read(&mut NonBlocking(&self.stream), buffer, want_bytes, pool, take)?;
        if let Read::Bytes(len, _) = read
            && len < buffers::LEN_BYTES
        {
            self.bulk = false;
            self.filled = 0;
        }
        Ok(read)
    }

    fn stop_receiving(&mut self, ring: &mut Ring) {
        let op = match self.receive {
            Receive::Multi => Op::Receive,
            Receive::Waiting => Op::Input,
            Receive::Off | Receive::Stopping => return,
        };
        self.receive = Receive::Stopping;
        // SAFETY: it points to nothing.
        unsafe { self.submit(ring, Op::Cancel, cancel(op, self.number)) };
    }

    /// Stops receiving, but watches whether the peer closes its side. Moves input that has arrived out of the shared
    /// receive buffers.
    pub(crate) fn pause(&mut self, ring: &mut Ring, buffers: &mut Buffers) {
        self.stop_receiving(ring);
        for piece in &mut self.inbox {
            let Piece::Lent(buffer, len) = *piece else { continue };
            let bytes = buffers.filled(buffer).and_then(|bytes| bytes.get(..len)).unwrap_or_default();
            *piece = Piece::Own(bytes.to_vec());
            buffers.offer(buffer);
        }
        let events = match self.watch {
            Watch::Off => libc::POLLRDHUP,
            // What is always watched for.
            Watch::Ended => 0,
            Watch::Ending | Watch::Breaking | Watch::Over => return,
        };
        self.watch = if self.watch == Watch::Off { Watch::Ending } else { Watch::Breaking };
        let entry = opcode::PollAdd::new(Fd(self.raw_fd()), events as u32).build();
        // SAFETY: it points to nothing.
        unsafe { self.submit(ring, Op::Watch, entry) };
    }

    /// Waits until the socket has something to read: a bell of shared memory, or its end.
    pub(crate) fn await_bell(&mut self, ring: &mut Ring) {
        let entry = opcode::PollAdd::new(Fd(self.raw_fd()), libc::POLLIN as u32).build();
        // SAFETY: it points to nothing.
        unsafe { self.submit(ring, Op::Bell, entry) };
    }

    /// Fails the connection because the peer broke the rules of shared memory.
    pub(crate) fn break_off(&mut self) {
        self.broken = true;
    }

    /// Returns the error of a connection that failed in both directions.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        if !self.broken {
            return None;
        }
        let why = SockRef::from(&self.stream).take_error().ok().flatten();
        Some(why.unwrap_or_else(|| io::ErrorKind::ConnectionReset.into()))
    }

    // ---- sending -----------------------------------------------------------------------------------------------------

    /// Sends the link's bytes if no send is in flight.
    ///
    /// # Errors
    /// What was sent before failed.
    pub(crate) fn send(
        &mut self,
        ring: &mut Ring,
        link: &mut Link,
        context: WriteContext<'_>,
    ) -> io::Result<Sending> {
        let mut full = false;
        match std::mem::replace(&mut self.send, Send::Idle) {
            Send::Idle => {}
            Send::Done(Ok(len)) => {
                self.handle_sent(len, link, context);
                full = !self.output.is_empty();
            }
            Send::Done(Err(why)) => match why.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR) => full = true,
                _ => return Err(why),
            },
            Send::Waiting => {
                self.send = Send::Waiting;
                return Ok(Sending::Nothing);
            }
            in_flight @ Send::AtOnce(_) => {
                self.send = in_flight;
                return Ok(Sending::Behind);
            }
        }
        link.take_output(&mut self.output);
        if self.output.is_empty() && link.alert().is_none() {
            return Ok(Sending::Nothing);
        }
        let all = link.unsent_bytes();
        // A kernel that encrypts refuses MSG_WAITALL.
        let small = all <= AT_ONCE_BYTES
            && !link.awaits_sent()
            && !full
            && link.descriptor().is_none()
            && !link.is_in_kernel();
        if let Some(entry) = small.then(|| self.send_request(all)).flatten() {
            self.send = Send::AtOnce(all);
            // SAFETY: the bytes are the output's, which stay where they are and are not advanced before the request completed;
            // so does the message on the heap, which is not filled before either.
            unsafe { self.submit(ring, Op::Send, entry.flags(squeue::Flags::SKIP_SUCCESS)) };
            return Ok(Sending::AtOnce);
        }
        self.write(ring, link, context).map(|()| Sending::Nothing)
    }

    fn handle_sent(&mut self, len: usize, link: &mut Link, context: WriteContext<'_>) {
        self.output.advance(len);
        link.handle_sent(len, context.now_ms, context.stats);
    }

    /// Writes as much as the socket accepts now, with the link's descriptor first. For many bytes this costs less than a request,
    /// which would keep all of them in memory until it completes. A descriptor that cannot be passed is dropped.
    fn write(&mut self, ring: &mut Ring, link: &mut Link, context: WriteContext<'_>) -> io::Result<()> {
        while !self.output.is_empty() {
            let (socket, flags) = (SockRef::from(&self.stream), libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT);
            let sent = gather(self.output.slices(), |slices| match link.descriptor() {
                Some(descriptor) => pass(&self.stream, slices, descriptor),
                None => socket.send_vectored_with_flags(slices, flags),
            });
            match sent {
                Ok(len) => {
                    drop(link.take_descriptor());
                    self.handle_sent(len, link, context);
                    link.take_output(&mut self.output);
                }
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => {
                    self.await_room(ring);
                    return Ok(());
                }
                Err(why) if link.descriptor().is_some() => {
                    tracing::debug!(conn = %link.conn(), %why, "cannot pass a descriptor");
                    drop(link.take_descriptor());
                }
                Err(why) => return Err(why),
            }
        }
        while let Some(alert) = link.alert() {
            match send_alert(&self.stream, alert) {
                Ok(()) => link.handle_alert_sent(),
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => {
                    self.await_room(ring);
                    return Ok(());
                }
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    /// Waits until the socket has room.
    fn await_room(&mut self, ring: &mut Ring) {
        self.send = Send::Waiting;
        let entry = opcode::PollAdd::new(Fd(self.raw_fd()), libc::POLLOUT as u32).build();
        // SAFETY: it points to nothing.
        unsafe { self.submit(ring, Op::Room, entry) };
    }

    /// Builds a request that sends all `all` bytes at once or fails; returns `None` if they are in too many slices.
    fn send_request(&mut self, all: usize) -> Option<squeue::Entry> {
        let (fd, flags) = (Fd(self.raw_fd()), libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | libc::MSG_WAITALL);
        let mut slices = self.output.slices();
        let first = slices.next().unwrap_or_default();
        let Some(second) = slices.next() else {
            let len = u32::try_from(first.len()).ok().filter(|_| first.len() == all)?;
            return Some(opcode::Send::new(fd, first.as_ptr(), len).flags(flags).build());
        };
        let message = self.message.get_or_insert_with(Message::new);
        let len = message.fill([first, second].into_iter().chain(slices));
        let entry = opcode::SendMsg::new(fd, &raw const message.header).flags(flags as u32);
        (len == all).then(|| entry.build())
    }

    // ---- the end -----------------------------------------------------------------------------------------------------

    /// Closes the sending side.
    pub(crate) fn half_close(&self) {
        // If that fails the peer is gone, which receiving tells.
        let _ = SockRef::from(&self.stream).shutdown(std::net::Shutdown::Write);
    }

    /// Closes the connection and cancels all its requests.
    pub(crate) fn close(&mut self, ring: &mut Ring, buffers: &mut Buffers) {
        self.conn = None;
        for piece in self.inbox.drain(..) {
            if let Piece::Lent(buffer, _) = piece {
                buffers.offer(buffer);
            }
        }
        if !self.is_idle() {
            // SAFETY: it points to nothing.
            unsafe { self.submit(ring, Op::Cancel, cancel_all(self.raw_fd())) };
        }
    }
}
