use std::io::{self, ErrorKind};

use crate::{Link, Moment, Pool, Read, gather};

/// What a socket that never blocks can do now, as far as that is known, for a loop that reads and writes it itself: after
/// "would block" it is left alone until something says otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Readiness {
    /// There may be something to read.
    pub readable: bool,
    /// There may be room to write.
    pub writable: bool,
    /// The peer writes no more; its end is read after what it wrote.
    pub read_closed: bool,
}

impl Readiness {
    /// Of a connection that was just opened: there is room, and whatever there is to read is announced.
    pub fn new() -> Self {
        Self { readable: false, writable: true, read_closed: false }
    }

    /// Writes what `link` has, as far as `stream` takes it.
    ///
    /// # Errors
    /// The stream's.
    pub fn write(
        &mut self,
        stream: &mut impl io::Write,
        link: &mut Link,
        moment: Moment<'_>,
    ) -> io::Result<()> {
        while self.writable && link.wants_write() {
            match gather(link.slices(), |slices| stream.write_vectored(slices)) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(n) => link.handle_written(n, moment.now_ms, moment.stats),
                Err(why) if why.kind() == ErrorKind::WouldBlock => self.writable = false,
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    /// Reads at most `want_bytes` into `buffer` and gives them to `take`, as [`Carrier::read`](crate::Carrier::read) does.
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
