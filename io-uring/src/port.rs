//! A socket, and what the kernel does with it.
//!
//! A port is asked for things by its methods, and hears of them by [`Port::complete`]. Everything that a request points to
//! belongs to the port: as long as one is [in flight](Port::is_idle), the port must not be dropped.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use hipr_io::{ConnId, Link, Moment, Output, Pool, Read, Readiness, Stream, gather};
use io_uring::types::Fd;
use io_uring::{opcode, squeue};
use rustix::net::RecvFlags;
use socket2::SockRef;

use crate::buffers::{self, Buffers};
use crate::ring::{Completion, Ring, cancel, cancel_all};
use crate::token::{Op, Token};

/// Slices in one vectored send.
const SLICES: usize = 64;
/// A reply up to this size is sent without hearing of it, if the socket takes it at once.
const AT_ONCE_BYTES: usize = 16 * 1024;
/// So many full buffers of the ring in a row are bulk.
const BULK_BUFFERS: u32 = 2;

/// A socket with all that the kernel may read or write for it.
pub(crate) struct Port {
    number: u32,
    stream: Stream,
    /// `None` after it was closed.
    pub(crate) conn: Option<ConnId>,
    /// Requests that have not completed.
    in_flight: u32,
    /// What has come and was not taken.
    inbox: VecDeque<Piece>,
    receive: Receive,
    /// Buffers of the ring that were filled to the end, one after the other.
    filled: u32,
    /// Much comes at a time: it is read when the kernel says that there is something, and lies in no buffer until then.
    bulk: bool,
    /// Whether there is, while much comes.
    input: Readiness,
    /// What is being sent, and what comes after it.
    output: Output,
    /// How the bytes are named to the kernel, when they are more than one piece.
    message: Option<Box<Message>>,
    send: Send,
    watch: Watch,
    /// The peer is gone in both directions.
    broken: bool,
}

/// Something that has come.
#[derive(Debug)]
pub(crate) enum Piece {
    /// Bytes in a buffer of the ring.
    Lent(u16, usize),
    /// Bytes that had to leave it.
    Own(Vec<u8>),
    /// The peer closed its sending side.
    End,
    /// The socket failed.
    Failed(io::Error),
}

/// Whether the socket is being received from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receive {
    Off,
    /// Again and again, into buffers of the ring.
    Multi,
    /// It is not; the kernel says when there is something to read.
    Waiting,
    /// It is being stopped.
    Stopping,
}

/// How sending stands.
#[derive(Debug)]
enum Send {
    Idle,
    /// The socket is full; the kernel says when it has room.
    Waiting,
    /// In flight, so many bytes, which either leave as they are submitted or come back.
    AtOnce(usize),
    Done(io::Result<usize>),
}

/// What is waited for while nothing is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watch {
    /// Nothing yet.
    Off,
    /// That the peer closes its sending side, or worse.
    Ending,
    /// It did, and nothing is waited for.
    Ended,
    /// That the peer is gone in both directions.
    Breaking,
    /// Nothing any more.
    Over,
}

/// The arguments of a vectored send, which the kernel may read until it completed.
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

    /// Names these slices, or the first of them; how many bytes that is.
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

/// A socket that is read without waiting. Its other users wait, so the socket itself does not say so.
struct AtOnce<'a>(&'a Stream);

impl io::Read for AtOnce<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::net::recv(self.0, buffer, RecvFlags::DONTWAIT)?.0)
    }
}

/// What a completion means for the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Nothing.
    None,
    /// It can go on.
    Ready,
    /// The peer closed its sending side.
    PeerClosed,
    /// Its shared memory has something to be looked at.
    Bell,
}

impl Port {
    /// A socket that nothing was asked of yet.
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

    /// Requests that have not completed.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Whether the kernel has nothing to do with it any more.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight == 0
    }

    fn raw_fd(&self) -> RawFd {
        self.stream.as_fd().as_raw_fd()
    }

    /// # Safety
    /// What `entry` points to belongs to this port and stays as it is until the request completed.
    unsafe fn submit(&mut self, ring: &mut Ring, op: Op, entry: squeue::Entry) {
        self.in_flight += 1;
        // SAFETY: what the caller promises; the descriptor is open as long as the port lives.
        unsafe { ring.push(Token::new(op, self.number), entry) };
    }

    // ---- completions -------------------------------------------------------------------------------------------------

    /// Takes what became of a request.
    pub(crate) fn complete(
        &mut self,
        completion: Completion,
        ring: &mut Ring,
        buffers: &mut Buffers,
    ) -> News {
        if !completion.more {
            self.in_flight -= 1;
        }
        match completion.token.op {
            Op::Receive => self.complete_receive(completion, ring, buffers),
            Op::Input => {
                self.receive = Receive::Off;
                self.input.readable = true;
                News::Ready
            }
            Op::Send => {
                self.send = Send::Done(completion.result());
                News::Ready
            }
            Op::Room => {
                self.send = Send::Idle;
                News::Ready
            }
            Op::Watch => self.complete_watch(completion.result()),
            Op::Bell => {
                self.broken |= completion.result().unwrap_or_default() & libc::POLLERR as usize != 0;
                News::Bell
            }
            Op::Wake | Op::Accept | Op::Cancel | Op::CancelAll => News::None,
        }
    }

    fn complete_receive(&mut self, completion: Completion, ring: &mut Ring, buffers: &mut Buffers) -> News {
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
        News::Ready
    }

    /// Files what came instead of bytes.
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

    fn complete_watch(&mut self, result: io::Result<usize>) -> News {
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
            (true, _) => News::Ready,
            (false, true) => News::PeerClosed,
            (false, false) => News::None,
        }
    }

    /// What was sent at once has left, if it has not come back.
    pub(crate) fn complete_at_once(&mut self) -> News {
        if let Send::AtOnce(len) = self.send {
            self.in_flight -= 1;
            self.send = Send::Done(Ok(len));
        }
        News::Ready
    }

    // ---- receiving ---------------------------------------------------------------------------------------------------

    /// The next piece that has come.
    pub(crate) fn next(&mut self) -> Option<Piece> {
        self.inbox.pop_front()
    }

    /// Asks for more.
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

    /// Reads into `buffer` while much comes, as [`Readiness::read`].
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
        let read = self.input.read(&mut AtOnce(&self.stream), buffer, want_bytes, pool, take)?;
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

    /// Receives no more, but watches whether the peer closes its side. What has come already is kept, not in the buffers that
    /// all share.
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

    /// Asks to be told when the socket has something to read, which is a bell of shared memory, or its end.
    pub(crate) fn await_bell(&mut self, ring: &mut Ring) {
        let entry = opcode::PollAdd::new(Fd(self.raw_fd()), libc::POLLIN as u32).build();
        // SAFETY: it points to nothing.
        unsafe { self.submit(ring, Op::Bell, entry) };
    }

    /// The peer broke the rules of shared memory.
    pub(crate) fn break_off(&mut self) {
        self.broken = true;
    }

    /// Why nothing can come or go any more.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        if !self.broken {
            return None;
        }
        let why = SockRef::from(&self.stream).take_error().ok().flatten();
        Some(why.unwrap_or_else(|| io::ErrorKind::ConnectionReset.into()))
    }

    // ---- sending -----------------------------------------------------------------------------------------------------

    /// Sends what there is if nothing is in flight. `true`: at once, and it may be over when it was submitted.
    ///
    /// # Errors
    /// What was sent before failed.
    pub(crate) fn send(&mut self, ring: &mut Ring, link: &mut Link, moment: Moment<'_>) -> io::Result<bool> {
        let mut full = false;
        match std::mem::replace(&mut self.send, Send::Idle) {
            Send::Idle => {}
            Send::Done(Ok(len)) => {
                self.handle_sent(len, link, moment);
                full = !self.output.is_empty();
            }
            Send::Done(Err(why)) => match why.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR) => full = true,
                _ => return Err(why),
            },
            in_flight @ (Send::Waiting | Send::AtOnce(_)) => {
                self.send = in_flight;
                return Ok(false);
            }
        }
        link.take_output(&mut self.output);
        if self.output.is_empty() {
            return Ok(false);
        }
        let all = link.unsent_bytes();
        let small = all <= AT_ONCE_BYTES && !link.awaits_sent() && !full;
        if let Some(entry) = small.then(|| self.send_request(all)).flatten() {
            self.send = Send::AtOnce(all);
            // SAFETY: the bytes are the output's, which stay where they are and are not advanced before the request completed;
            // so does the message on the heap, which is not filled before either.
            unsafe { self.submit(ring, Op::Send, entry.flags(squeue::Flags::SKIP_SUCCESS)) };
            return Ok(true);
        }
        self.write(ring, link, moment).map(|()| false)
    }

    fn handle_sent(&mut self, len: usize, link: &mut Link, moment: Moment<'_>) {
        self.output.advance(len);
        link.handle_sent(len, moment.now_ms, moment.stats);
    }

    /// Writes what there is, as far as the socket takes it now: much at a time costs less so than as a request, whose bytes all
    /// stay where they are until it completed.
    fn write(&mut self, ring: &mut Ring, link: &mut Link, moment: Moment<'_>) -> io::Result<()> {
        while !self.output.is_empty() {
            let (socket, flags) = (SockRef::from(&self.stream), libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT);
            match gather(self.output.slices(), |slices| socket.send_vectored_with_flags(slices, flags)) {
                Ok(len) => {
                    self.handle_sent(len, link, moment);
                    link.take_output(&mut self.output);
                }
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => {
                    self.send = Send::Waiting;
                    let entry = opcode::PollAdd::new(Fd(self.raw_fd()), libc::POLLOUT as u32).build();
                    // SAFETY: it points to nothing.
                    unsafe { self.submit(ring, Op::Room, entry) };
                    return Ok(());
                }
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    /// A request to send all `all` bytes that there are, at once or not at all; `None` if they are in too many pieces.
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

    /// The connection is over: everything that the kernel still has to do is cancelled.
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
