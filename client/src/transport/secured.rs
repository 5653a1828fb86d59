//! A TCP connection with encryption.
//!
//! One channel encrypts and decrypts for the thread that writes and the thread that reads. Its lock is held for that alone, never while
//! the socket is waited for: a worker that does not read must not keep its replies from being read.

use std::io::{self, ErrorKind, IoSlice};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hipr_io::gather_some;
use hipr_resume::Terms;
use hipr_tls::{ClientChannel, Fault, Fingerprint, PIECE_BYTES};
use socket2::SockRef;

/// Size of the buffer that the socket is read into.
const READ_BYTES: usize = 256 << 10;
/// Maximum length of an encrypted record.
const RECORD_MAX_BYTES: usize = 17 << 10;
/// Number of decrypted bytes that a look for input may take out of the channel.
const LOOK_BYTES: usize = 4 << 10;

/// An encrypted connection whose worker has proved its key.
#[derive(Debug)]
pub(crate) struct Secured {
    socket: TcpStream,
    channel: Mutex<ClientChannel>,
    outgoing: Mutex<Outgoing>,
    incoming: Mutex<Incoming>,
}

/// What leaves: whoever has the lock encrypts and sends, so that bytes leave in the order in which they were encrypted.
#[derive(Debug, Default)]
struct Outgoing {
    sealed: Vec<u8>,
    /// Whether some of what was encrypted was not sent; then nothing that follows means anything.
    is_broken: bool,
}

/// What arrives.
#[derive(Debug)]
struct Incoming {
    /// Bytes of the socket that were not decrypted: a range of the buffer.
    sealed: Box<[u8]>,
    start: usize,
    end: usize,
    /// Decrypted bytes that a look for input has found.
    plain: Vec<u8>,
    /// What the next read fails with, after those.
    failure: Option<io::Error>,
    /// Whether the socket has ended.
    is_eof: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Secured {
    /// Carries out the handshake, within the socket's time-outs; what this side has to say at its end leaves with the first write.
    ///
    /// # Errors
    /// The worker does not speak TLS, or is not the expected one.
    pub(crate) fn open(socket: TcpStream, channel: ClientChannel) -> io::Result<Self> {
        let incoming = Incoming {
            sealed: vec![0; READ_BYTES].into(),
            start: 0,
            end: 0,
            plain: Vec::new(),
            failure: None,
            is_eof: false,
        };
        let secured = Self {
            socket,
            channel: Mutex::new(channel),
            outgoing: Mutex::default(),
            incoming: Mutex::new(incoming),
        };
        while !lock(&secured.channel).is_ready() {
            secured.flush()?;
            secured.advance().map_err(|why| match why.kind() {
                ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => io::Error::new(
                    why.kind(),
                    "it ends the connection where encryption would begin; without --authorized a worker has an address without hipr://",
                ),
                _ => why,
            })?;
        }
        Ok(secured)
    }

    /// Waits until the worker has let this side in.
    ///
    /// # Errors
    /// It does not.
    pub(crate) fn enter(&self) -> io::Result<()> {
        self.flush()?;
        while !lock(&self.channel).is_in() {
            self.advance()?;
        }
        Ok(())
    }

    /// Takes in what arrives next, before any bytes of HIPR.
    fn advance(&self) -> io::Result<()> {
        let mut incoming = lock(&self.incoming);
        if incoming.start == incoming.end {
            self.fill(&mut incoming, 0)?;
            if incoming.is_eof {
                return Err(Fault::Truncated.into());
            }
        }
        self.decrypt(&mut incoming, &mut []).map(drop)
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Returns the fingerprint of the worker's key.
    pub(crate) fn worker(&self) -> Option<Fingerprint> {
        lock(&self.channel).worker()
    }

    // ---- writing -----------------------------------------------------------------------------------------------------

    /// Encrypts and sends some of the bytes; returns how many.
    pub(crate) fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut outgoing = lock(&self.outgoing);
        let len = gather_some(slices.iter().map(|slice| &**slice), PIECE_BYTES, |pieces| {
            lock(&self.channel).channel().send(pieces);
            pieces.iter().map(|piece| piece.len()).sum()
        });
        self.send(&mut outgoing)?;
        Ok(len)
    }

    fn flush(&self) -> io::Result<()> {
        self.send(&mut lock(&self.outgoing))
    }

    /// Sends the channel's output.
    fn send(&self, outgoing: &mut Outgoing) -> io::Result<()> {
        let Outgoing { sealed, is_broken } = outgoing;
        if *is_broken {
            return Err(ErrorKind::BrokenPipe.into());
        }
        sealed.clear();
        lock(&self.channel).channel().take_output(sealed);
        let mut left = sealed.as_slice();
        while !left.is_empty() {
            match SockRef::from(&self.socket).send_with_flags(left, libc::MSG_NOSIGNAL) {
                Ok(sent) => left = left.get(sent..).unwrap_or_default(),
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => {
                    *is_broken = true;
                    return Err(why);
                }
            }
        }
        Ok(())
    }

    /// Returns the terms of the session that was claimed, once they have come.
    pub(crate) fn terms(&self) -> Option<Terms> {
        lock(&self.channel).terms()
    }

    /// Tells the worker that nothing more comes, if that can be done without waiting.
    pub(crate) fn say_goodbye(&self) {
        self.say_goodbye_behind(&[]);
    }

    /// Does what [`say_goodbye`](Self::say_goodbye) does behind some last bytes.
    pub(crate) fn say_goodbye_behind(&self, bytes: &[u8]) {
        let Ok(outgoing) = self.outgoing.try_lock() else { return };
        let mut last = Vec::new();
        if let Ok(mut channel) = self.channel.try_lock() {
            channel.channel().send(&[IoSlice::new(bytes)]);
            channel.channel().close();
            channel.channel().take_output(&mut last);
        }
        if !outgoing.is_broken && !last.is_empty() {
            let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
            // A worker that is gone needs no good-bye.
            let _ = SockRef::from(&self.socket).send_with_flags(&last, flags);
        }
    }

    // ---- reading -----------------------------------------------------------------------------------------------------

    /// Decrypts bytes that have arrived, waiting for the first; returns 0 at the end of the stream.
    pub(crate) fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        self.read_some(&mut lock(&self.incoming), into, 0)
    }

    /// Fills `into`; returns less at the end of the stream, or after a time-out or a signal.
    pub(crate) fn read_all(&self, into: &mut [u8]) -> io::Result<usize> {
        let mut incoming = lock(&self.incoming);
        let mut len = 0;
        while len < into.len() {
            let rest = into.get_mut(len..).unwrap_or_default();
            let missing = rest.len();
            match self.read_some(&mut incoming, rest, missing) {
                Ok(0) => break,
                Ok(read) => len += read,
                Err(why) if len == 0 => return Err(why),
                Err(why) => {
                    if !matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) {
                        incoming.failure = Some(why);
                    }
                    break;
                }
            }
        }
        Ok(len)
    }

    /// Returns whether a read would not wait: decrypted bytes are there, or the end of the stream, or an error.
    pub(crate) fn has_input(&self) -> bool {
        let mut incoming = lock(&self.incoming);
        let mut plain = std::mem::take(&mut incoming.plain);
        while plain.is_empty() && incoming.failure.is_none() && !incoming.is_eof {
            plain.resize(LOOK_BYTES, 0);
            let len = match self.decrypt(&mut incoming, &mut plain) {
                Ok(len) => len,
                Err(why) => {
                    incoming.failure = Some(why);
                    0
                }
            };
            plain.truncate(len);
            if len > 0 || incoming.failure.is_some() || lock(&self.channel).channel().is_ended() {
                break;
            }
            match self.receive(&mut incoming, libc::MSG_DONTWAIT, READ_BYTES) {
                Ok(()) => {}
                Err(why) if why.kind() == ErrorKind::WouldBlock => return false,
                Err(why) => incoming.failure = Some(why),
            }
        }
        incoming.plain = plain;
        true
    }

    /// Decrypts bytes into `into`, waiting for the first. At least `certain` of them are certain to come.
    fn read_some(&self, incoming: &mut Incoming, into: &mut [u8], certain: usize) -> io::Result<usize> {
        if !incoming.plain.is_empty() {
            let len = incoming.plain.len().min(into.len());
            let found = incoming.plain.drain(..len);
            into.iter_mut().zip(found).for_each(|(place, byte)| *place = byte);
            return Ok(len);
        }
        if let Some(why) = incoming.failure.take() {
            return Err(why);
        }
        loop {
            let len = self.decrypt(incoming, into)?;
            if len > 0 || lock(&self.channel).channel().is_ended() {
                return Ok(len);
            }
            if incoming.is_eof {
                return lock(&self.channel).channel().handle_eof().map(|()| 0).map_err(Into::into);
            }
            self.fill(incoming, certain)?;
        }
    }

    /// Decrypts what was received, as far as it fits.
    fn decrypt(&self, incoming: &mut Incoming, into: &mut [u8]) -> io::Result<usize> {
        let mut sealed = incoming.sealed.get(incoming.start..incoming.end).unwrap_or_default();
        let decrypted = lock(&self.channel).receive(&mut sealed, into);
        incoming.start = incoming.end - sealed.len();
        decrypted.map_err(Into::into)
    }

    /// Waits for bytes of the socket when all that were there are decrypted; for as many as are certain to come.
    fn fill(&self, incoming: &mut Incoming, certain: usize) -> io::Result<()> {
        // Encrypted bytes are more than decrypted ones; a part of a record may be in the channel already.
        let certain = certain.saturating_sub(RECORD_MAX_BYTES);
        let (flags, len) =
            if certain > 1 { (libc::MSG_WAITALL, certain.min(READ_BYTES)) } else { (0, READ_BYTES) };
        self.receive(incoming, flags, len)
    }

    fn receive(&self, incoming: &mut Incoming, flags: libc::c_int, len: usize) -> io::Result<()> {
        let buffer = incoming.sealed.get_mut(..len).unwrap_or_default();
        let read = loop {
            // SAFETY: an open socket, and memory that is ours during the call.
            let read = unsafe {
                libc::recv(self.socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), flags)
            };
            match usize::try_from(read).map_err(|_| io::Error::last_os_error()) {
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        (incoming.start, incoming.end) = (0, read);
        incoming.is_eof = read == 0;
        Ok(())
    }
}
