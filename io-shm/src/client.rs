use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, Shutdown, recv, recvmsg, send, shutdown,
};

use crate::descriptor::{Waits, receive};
use crate::memory::Memory;
use crate::positions::InvalidPosition;
use crate::ring::{Direction, Receiving, Sending, mapping_bytes};
use crate::served::{ANSWER, Answer, HELLO};
use crate::{RING_BYTES, SPIN};

/// The client's end of a shared-memory connection. One thread may read while another writes.
///
/// Reading and writing block, as those of a socket do. A forked child must not use it.
#[derive(Debug)]
pub struct Client {
    /// The control socket: sets up the connection, receives the bell for the reading thread, and is closed with the
    /// connection.
    control: OwnedFd,
    /// The socket that receives the bell for the writing thread.
    room: OwnedFd,
    sending: Mutex<Sending>,
    receiving: Mutex<Receiving>,
    /// A descriptor that the worker has passed. Locked while the control socket is read.
    passed: Mutex<Option<OwnedFd>>,
    spin: Duration,
    /// Timeout of reading and writing in microseconds; 0 for none.
    timeout_us: AtomicU64,
}

/// Poll flags which say that the other side is gone.
const GONE: PollFlags = PollFlags::RDHUP.union(PollFlags::HUP).union(PollFlags::ERR);

impl Client {
    /// Sets up the rings with the worker at the other end of a unix socket, within `timeout`.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`]; [`ErrorKind::UnexpectedEof`] if the worker closes the socket; [`ErrorKind::InvalidData`] if it
    /// answers something else.
    pub fn open(control: impl Into<OwnedFd>, timeout: Duration) -> io::Result<Self> {
        let control = control.into();
        send(&control, &HELLO, SendFlags::NOSIGNAL)?;
        if await_any(&mut [PollFd::new(&control, PollFlags::IN)], Some(timeout))? == 0 {
            return Err(ErrorKind::TimedOut.into());
        }
        let mut answer = [0; ANSWER];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let into = &mut [IoSliceMut::new(&mut answer)];
        let len = recvmsg(&control, into, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?.bytes;
        let mut passed = ancillary.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect(),
            _ => Vec::new(),
        });
        let (file, room) = (passed.next(), passed.next());
        if len == 0 {
            let why = "the worker does not support shared memory on this socket";
            return Err(io::Error::new(ErrorKind::UnexpectedEof, why));
        }
        let not_ours = || {
            io::Error::new(
                ErrorKind::InvalidData,
                "unexpected answer: no worker with shared memory listens on this socket",
            )
        };
        let capacity = Answer::read(&answer).filter(|_| len == ANSWER).ok_or_else(not_ours)?.capacity;
        let (Some(file), Some(room)) = (file, room) else { return Err(not_ours()) };
        if !capacity.is_power_of_two() || !(4096..=16 * RING_BYTES).contains(&capacity) {
            return Err(not_ours());
        }
        let memory = Arc::new(Memory::take(&file, mapping_bytes(capacity))?);
        Ok(Self {
            control,
            room,
            sending: Mutex::new(Sending::new(&memory, capacity, Direction::ToWorker)),
            receiving: Mutex::new(Receiving::new(&memory, capacity, Direction::ToClient)),
            passed: Mutex::default(),
            // Where there is one processor, the other side does nothing while this one looks.
            spin: if std::thread::available_parallelism().is_ok_and(|n| n.get() > 1) {
                SPIN
            } else {
                Duration::ZERO
            },
            timeout_us: AtomicU64::new(0),
        })
    }

    /// Sets how long reading and writing may wait before they fail with [`ErrorKind::WouldBlock`]; `None` for any time.
    pub fn set_timeout(&self, timeout: Option<Duration>) {
        let us = timeout.map_or(0, |timeout| u64::try_from(timeout.as_micros()).unwrap_or(u64::MAX).max(1));
        self.timeout_us.store(us, Relaxed);
    }

    /// Waits until at least one byte can be read, and reads what is there. Returns 0 when the worker has closed the
    /// connection and everything was read.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`] if the worker writes what cannot be; [`ErrorKind::WouldBlock`], [`ErrorKind::Interrupted`].
    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        let mut receiving = lock(&self.receiving);
        let read = receiving.read(into, || self.ring())?;
        if read > 0 {
            return Ok(read);
        }
        let is_over = !self.spin(|| receiving.has_input())? && receiving.prepare_sleep()? && {
            let slept = self.sleep(&self.control, PollFlags::IN);
            receiving.awake();
            slept?
        };
        let read = receiving.read(into, || self.ring())?;
        match read {
            0 if is_over => Ok(0),
            // Rung for what was read meanwhile.
            0 => Err(ErrorKind::Interrupted.into()),
            read => Ok(read),
        }
    }

    /// Returns whether bytes, or the connection's end, can be read without waiting. While another thread reads, this waits for it.
    pub fn has_input(&self) -> bool {
        // If it cannot be told, the next read says why.
        lock(&self.receiving).has_input().unwrap_or(true)
    }

    /// Waits until there is room, and writes at least one byte of `slices`.
    ///
    /// # Errors
    /// [`ErrorKind::BrokenPipe`] when the worker has gone; else as [`read`](Self::read).
    pub fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if slices.iter().all(|slice| slice.is_empty()) {
            return Ok(0);
        }
        let mut sending = lock(&self.sending);
        let written = sending.write(slices, || self.ring())?;
        if written > 0 {
            return Ok(written);
        }
        if !self.spin(|| sending.has_room())? && sending.prepare_sleep()? {
            let slept = self.sleep(&self.room, PollFlags::IN);
            sending.awake();
            if slept? {
                return Err(ErrorKind::BrokenPipe.into());
            }
        }
        match sending.write(slices, || self.ring())? {
            0 => Err(ErrorKind::Interrupted.into()),
            written => Ok(written),
        }
    }

    /// Returns the descriptor that the worker has passed ahead of what was read last, if it has.
    pub fn take_descriptor(&self) -> Option<OwnedFd> {
        self.hear();
        lock(&self.passed).take()
    }

    /// Reads all bells of the reading thread, and a descriptor among them.
    fn hear(&self) {
        let mut passed = lock(&self.passed);
        while matches!(receive(&self.control, &mut [0; 64], &mut passed, Waits::No), Ok(1..)) {}
    }

    /// Closes the sending side; the worker still reads what was written.
    pub fn shutdown_write(&self) {
        // The worker may be gone already.
        let _ = shutdown(&self.control, Shutdown::Write);
    }

    /// Closes both directions and wakes threads that read or write.
    pub fn shutdown(&self) {
        let _ = shutdown(&self.control, Shutdown::Both);
    }

    /// Returns the descriptors that a forked child has to close.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.control.as_fd(), self.room.as_fd()]
    }

    /// Rings the worker's bell.
    fn ring(&self) {
        // If the socket is full the worker has bells enough to hear; if it is closed nobody hears them.
        let _ = send(&self.control, b"\0", SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }

    /// Polls a condition for a short time; returns whether it became true.
    fn spin(
        &self,
        mut is_so: impl FnMut() -> Result<bool, InvalidPosition>,
    ) -> Result<bool, InvalidPosition> {
        /// Number of times that the awaited condition is checked between two reads of the clock.
        const LOOKS: u32 = 64;
        let mut end = None;
        loop {
            for _ in 0..LOOKS {
                if is_so()? {
                    return Ok(true);
                }
                std::hint::spin_loop();
            }
            let now = Instant::now();
            if now >= *end.get_or_insert(now + self.spin) {
                return Ok(false);
            }
        }
    }

    /// Sleeps until the bell rings. Returns true if the worker is gone.
    fn sleep(&self, bell: &OwnedFd, wake: PollFlags) -> io::Result<bool> {
        let timeout = match self.timeout_us.load(Relaxed) {
            0 => None,
            us => Some(Duration::from_micros(us)),
        };
        let mut fds = [PollFd::new(&self.control, PollFlags::RDHUP), PollFd::new(bell, wake)];
        if await_any(&mut fds, timeout)? == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        let is_gone = fds.iter().any(|fd| fd.revents().intersects(GONE));
        // All bells so far were for this.
        if std::ptr::eq(bell, &raw const self.control) {
            self.hear();
            return Ok(is_gone);
        }
        while matches!(recv(bell, &mut [0; 64], RecvFlags::DONTWAIT), Ok((_, 1..))) {}
        Ok(is_gone)
    }
}

/// Waits until one of `fds` is ready; returns how many are, or 0 after the timeout.
fn await_any(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<usize> {
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    Ok(poll(fds, timeout.as_ref())?)
}

/// Locks a mutex. Poisoning is ignored: a panic elsewhere leaves valid positions.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
