use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};

use crate::{Link, Pool, Read, WriteContext, gather, send_alert};

/// The operations for which a non-blocking socket is probably ready, for a loop that reads and writes it directly. After "would
/// block" the loop does not try again until it is told that the socket is ready.
#[derive(Clone, Copy, Debug)]
pub struct Readiness {
    /// Whether there may be bytes to read.
    pub readable: bool,
    /// Whether there may be room to write.
    pub writable: bool,
    /// Whether the peer has closed its sending side; bytes may be left to read before the end.
    pub read_closed: bool,
}

impl Readiness {
    /// Returns the state of a connection that was just opened: writable, and not known to be readable.
    pub fn new() -> Self {
        Self { readable: false, writable: true, read_closed: false }
    }

    /// Writes what `link` has to send, as far as `stream` accepts it.
    ///
    /// # Errors
    /// The stream's.
    pub fn write(
        &mut self,
        stream: &mut impl io::Write,
        link: &mut Link,
        context: WriteContext<'_>,
    ) -> io::Result<()> {
        while self.writable && link.wants_write() {
            match gather(link.slices(), |slices| stream.write_vectored(slices)) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(n) => link.handle_written(n, context.now_ms, context.stats),
                Err(why) if why.kind() == ErrorKind::WouldBlock => self.writable = false,
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    /// Sends the alert that `link` has for a client for whom the kernel encrypts, if there is room.
    ///
    /// # Errors
    /// The socket's.
    pub fn say(&mut self, socket: &impl AsFd, link: &mut Link) -> io::Result<()> {
        while self.writable
            && let Some(alert) = link.alert()
        {
            match send_alert(socket, alert) {
                Ok(()) => link.handle_alert_sent(),
                Err(why) if why.kind() == ErrorKind::WouldBlock => self.writable = false,
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    /// Writes the first bytes that `link` has to send, as far as the socket accepts them, with the descriptor that goes ahead of them: by
    /// `pass`, which returns how many bytes were written. A descriptor that cannot be passed is dropped, and nothing written.
    pub fn pass(
        &mut self,
        link: &mut Link,
        context: WriteContext<'_>,
        pass: impl Fn(&[IoSlice<'_>], BorrowedFd<'_>) -> io::Result<usize>,
    ) {
        while self.writable && link.wants_write() {
            let Some(descriptor) = link.descriptor() else { return };
            match gather(link.slices(), |slices| pass(slices, descriptor)) {
                Ok(n) => {
                    drop(link.take_descriptor());
                    link.handle_written(n, context.now_ms, context.stats);
                }
                Err(why) if why.kind() == ErrorKind::WouldBlock => self.writable = false,
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => {
                    tracing::debug!(conn = %link.conn(), %why, "cannot pass a descriptor");
                    drop(link.take_descriptor());
                }
            }
        }
    }

    /// Reads at most `want_bytes` into `buffer` and passes them to `take`, as [`Carrier::read`](crate::Carrier::read) does.
    ///
    /// # Errors
    /// The stream's.
    pub fn read<R>(
        &mut self,
        stream: &mut impl io::Read,
        buffer: &mut Vec<u8>,
        want_bytes: usize,
        pool: &mut Pool,
        take: impl FnOnce(&mut Vec<u8>, usize, &mut Pool) -> R,
    ) -> io::Result<Read<R>> {
        while self.readable {
            let want = want_bytes.min(buffer.len());
            match stream.read(buffer.get_mut(..want).unwrap_or_default()) {
                Ok(0) => {
                    self.readable = false;
                    return Ok(Read::End);
                }
                Ok(len) => {
                    // Fewer bytes than wanted are all there are, and more will be an event (epoll(7), edge-triggered).
                    self.readable = len == want || self.read_closed;
                    return Ok(Read::Bytes(len, take(buffer, len, pool)));
                }
                Err(why) if why.kind() == ErrorKind::WouldBlock => self.readable = false,
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
        Ok(Read::Nothing)
    }
}

impl Default for Readiness {
    fn default() -> Self {
        Self::new()
    }
}
