//! One connection through a proxy: both directions on one thread, so that the order of what passes is certain.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::link::{Direction, Link};

/// Length in bytes of a read.
const READ_BYTES: usize = 256 << 10;
/// Maximum number of reads from a side before the other has its turn.
const READS_MAX: usize = 16;

/// Is told what passes.
pub(super) trait Watch {
    /// Notes bytes that the client has sent.
    fn sent(&mut self, bytes: &[u8]);
    /// Notes that the client has closed its side.
    fn client_ended(&mut self);
    /// Hands bytes to the client by `write`, which returns how many it took, and notes those.
    fn deliver(
        &mut self,
        bytes: &[u8],
        write: &mut dyn FnMut(&[u8]) -> io::Result<usize>,
    ) -> io::Result<usize>;
}

/// Carries the bytes of a connection over a link until both sides have closed it.
///
/// # Errors
/// A side has broken the connection.
pub(super) fn carry(
    client: &TcpStream,
    worker: &TcpStream,
    link: Link,
    watch: &mut dyn Watch,
    knife: &mut Knife,
) -> io::Result<()> {
    for side in [client, worker] {
        side.set_nodelay(true)?;
        side.set_nonblocking(true)?;
    }
    let (mut to_worker, mut to_client) = (Lane::new(link), Lane::new(link));
    loop {
        let now = Instant::now();
        if knife.is_due(now) {
            return Err(ErrorKind::ConnectionAborted.into());
        }
        to_client.fill(worker, now, |_| {})?;
        // Directly before replies are handed over: what the client has sent by now it has sent without them.
        to_worker.fill(client, now, |bytes| {
            if bytes.is_empty() { watch.client_ended() } else { watch.sent(bytes) }
        })?;
        to_client
            .empty(client, now, |bytes| watch.deliver(bytes, &mut |bytes| knife.write(client, bytes)))?;
        to_worker.empty(worker, now, |bytes| knife.write(worker, bytes))?;
        if to_worker.is_over && to_client.is_over {
            return Ok(());
        }
        wait(client, worker, &to_worker, &to_client, knife)?;
    }
}

/// What cuts a connection.
pub(super) struct Knife {
    pub(super) at: Option<Instant>,
    /// Bytes, of both directions, behind which it cuts.
    pub(super) left_bytes: Option<u64>,
    /// Whether it has.
    pub(super) has_cut: bool,
}

impl Knife {
    fn is_due(&mut self, now: Instant) -> bool {
        self.has_cut = self.left_bytes == Some(0) || self.at.is_some_and(|at| at <= now);
        self.has_cut
    }

    /// Writes bytes, but none behind the cut.
    fn write(&mut self, mut to: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
        let Some(left) = &mut self.left_bytes else { return to.write(bytes) };
        let room = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
        if room == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        let len = to.write(&bytes[..room])?;
        *left -= len as u64;
        Ok(len)
    }
}

/// Waits until there is something to do.
fn wait(
    client: &TcpStream,
    worker: &TcpStream,
    to_worker: &Lane,
    to_client: &Lane,
    knife: &Knife,
) -> io::Result<()> {
    let due = [to_worker, to_client].into_iter().filter_map(Lane::next_due);
    let due = due.chain(knife.at).min();
    let timeout = due.map(|due| due.saturating_duration_since(Instant::now()));
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    let interests =
        [(client, to_worker, to_client), (worker, to_client, to_worker)].map(|(side, from, to)| {
            let reads = if from.takes_more() { PollFlags::IN } else { PollFlags::empty() };
            let writes = if to.is_blocked { PollFlags::OUT } else { PollFlags::empty() };
            (side, reads | writes)
        });
    // A side without interests stays out: its end would be reported again and again.
    let mut fds: Vec<PollFd<'_>> = interests
        .iter()
        .filter(|(_, flags)| !flags.is_empty())
        .map(|(side, flags)| PollFd::new(*side, *flags))
        .collect();
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Bytes on their way in one direction.
struct Lane {
    direction: Direction,
    queue: VecDeque<Piece>,
    queued_bytes: usize,
    holds_bytes: usize,
    piece_bytes: usize,
    buffer: Vec<u8>,
    /// Whether the sending side has closed.
    has_ended: bool,
    /// Whether the receiving side takes no bytes at the moment.
    is_blocked: bool,
    /// Whether the receiving side has been told of the end.
    is_over: bool,
}

/// Bytes that arrive together; without bytes, the end.
struct Piece {
    due: Instant,
    bytes: Vec<u8>,
    written: usize,
}

impl Lane {
    fn new(link: Link) -> Self {
        Self {
            direction: Direction::new(link),
            queue: VecDeque::new(),
            queued_bytes: 0,
            holds_bytes: link.holds_bytes(),
            piece_bytes: link.piece_bytes(),
            buffer: vec![0; READ_BYTES],
            has_ended: false,
            is_blocked: false,
            is_over: false,
        }
    }

    fn takes_more(&self) -> bool {
        !self.has_ended && self.queued_bytes < self.holds_bytes
    }

    /// When the next piece arrives, if the receiving side is ready for it.
    fn next_due(&self) -> Option<Instant> {
        self.queue.front().filter(|_| !self.is_blocked).map(|piece| piece.due)
    }

    /// Reads what there is; `note` is given the bytes, and none at the end.
    fn fill(&mut self, mut from: &TcpStream, now: Instant, mut note: impl FnMut(&[u8])) -> io::Result<()> {
        for _ in 0..READS_MAX {
            if !self.takes_more() {
                break;
            }
            let len = match from.read(&mut self.buffer) {
                Ok(len) => len,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            note(&self.buffer[..len]);
            self.has_ended = len == 0;
            self.queued_bytes += len;
            let end = self.has_ended.then_some(&[][..]);
            for bytes in self.buffer[..len].chunks(self.piece_bytes).chain(end) {
                let due = self.direction.arrival(now, bytes.len());
                self.queue.push_back(Piece { due, bytes: bytes.to_vec(), written: 0 });
            }
        }
        Ok(())
    }

    /// Writes what has arrived, as far as the receiving side takes it.
    fn empty(
        &mut self,
        to: &TcpStream,
        now: Instant,
        mut write: impl FnMut(&[u8]) -> io::Result<usize>,
    ) -> io::Result<()> {
        self.is_blocked = false;
        while let Some(piece) = self.queue.front_mut().filter(|piece| piece.due <= now) {
            if piece.bytes.is_empty() {
                self.is_over = true;
                self.queue.pop_front();
                // A side that has gone cannot be told, and needs not.
                let _ = to.shutdown(Shutdown::Write);
                break;
            }
            match write(&piece.bytes[piece.written..]) {
                Ok(len) => {
                    piece.written += len;
                    self.queued_bytes -= len;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.is_blocked = true;
                    break;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if piece.written == piece.bytes.len() {
                self.queue.pop_front();
            }
        }
        Ok(())
    }
}
