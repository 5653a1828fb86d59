//! The encrypted channel, for both ends: bytes in, bytes out, no socket.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::sync::Arc;

use rustls::{Connection, Error};

use crate::lent::SendSecret;
use crate::{Fault, LentKey, PublicKey};

/// Maximum number of bytes that a peer may send before the handshake is over and its preamble was read. Real ones are below 2 KiB.
pub(crate) const BEGINNING_MAX_BYTES: usize = 64 << 10;
/// The most bytes that should be encrypted before they are sent: few enough for a processor's cache.
pub const PIECE_BYTES: usize = 128 << 10;
/// The first byte of a TLS record of a handshake, and of one with an alert.
const HANDSHAKE: u8 = 22;
const ALERT: u8 = 21;
/// The first byte of an encrypted record, and the most bytes that one carries.
const ENCRYPTED: u8 = 23;
const RECORD_MAX_BYTES: usize = 16 << 10;
/// An alert without a record: that this side says good-bye.
const CLOSE_NOTIFY: [u8; 2] = [1, 0];

/// TLS 1.3 with rustls. It holds at most two records in each direction besides what was not taken.
#[derive(Debug)]
pub struct Channel {
    connection: Connection,
    /// Number of bytes received until the beginning was over.
    beginning_bytes: usize,
    /// Whether the handshake is over and the preamble was read.
    is_open: bool,
    has_input: bool,
    /// Whether the peer has said good-bye.
    is_ended: bool,
    /// Whether nothing more may be sent.
    is_closed: bool,
    /// What the key for the sending direction can be made from, until it is lent or nobody wants it.
    secret: Option<Arc<SendSecret>>,
    /// Number of records that this side had to send since the handshake, and of those that it has sent.
    records: (u64, u64),
    /// Whether the sending direction's key was lent: rustls encrypts nothing any more.
    is_lent: bool,
    /// What is to be said behind everything else, as an alert, by who has the key.
    alert: Option<[u8; 2]>,
    /// Whether who has the key may send nothing more: the alert was sent, or there was a fault.
    is_mute: bool,
}

impl Channel {
    pub(crate) fn new(mut connection: Connection) -> Self {
        // Whoever sends has the limits.
        connection.set_buffer_limit(None);
        let (is_open, has_input, is_ended, is_closed) = Default::default();
        let (secret, records, is_lent, alert, is_mute) = Default::default();
        Self {
            connection,
            beginning_bytes: 0,
            is_open,
            has_input,
            is_ended,
            is_closed,
            secret,
            records,
            is_lent,
            alert,
            is_mute,
        }
    }

    /// Keeps what the key for the sending direction can be made from.
    pub(crate) fn keeping(mut self, secret: Arc<SendSecret>) -> Self {
        self.secret = Some(secret);
        self
    }

    /// Decrypts bytes of `input` into `into`, until that is full or nothing is left of `input`; returns the number of decrypted bytes.
    /// A full `into` may leave more, which the next call has.
    ///
    /// # Errors
    /// The peer breaks the rules. An alert to send may be in the output.
    pub fn receive(&mut self, input: &mut &[u8], into: &mut [u8]) -> Result<usize, Fault> {
        let mut len = 0;
        loop {
            let room = into.get_mut(len..).unwrap_or_default();
            if room.is_empty() {
                return Ok(len);
            }
            match self.connection.reader().read(room) {
                Ok(0) => self.is_ended = true,
                Ok(read) => {
                    len += read;
                    continue;
                }
                Err(why) if why.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return Err(self.fail(Fault::Truncated)),
            }
            if self.is_ended {
                // Nothing that follows the good-bye means anything.
                *input = &[];
            }
            let Some(&first) = input.first() else { return Ok(len) };
            if !std::mem::replace(&mut self.has_input, true) && first != HANDSHAKE && first != ALERT {
                return Err(self.refuse_plain());
            }
            let before = input.len();
            if self.connection.read_tls(input).is_err() {
                return Err(self.fail(Fault::TooLong));
            }
            if !self.is_open {
                self.beginning_bytes += before - input.len();
                if self.beginning_bytes > BEGINNING_MAX_BYTES {
                    return Err(self.fail(Fault::TooLong));
                }
            }
            if let Err(why) = self.connection.process_new_packets() {
                return Err(self.fail(why.into()));
            }
            if self.is_lent && self.has_answer() {
                return Err(self.fail(Fault::KeyIsOver));
            }
        }
    }

    /// Returns whether rustls wants to answer what it has received. It keeps the answer to a wish for new keys until the next write.
    fn has_answer(&mut self) -> bool {
        let _ = self.connection.writer().write(&[]);
        self.connection.wants_write()
    }

    /// Returns whether decrypted bytes wait to be taken by [`receive`](Self::receive).
    pub fn has_plain(&mut self) -> bool {
        match self.connection.reader().into_first_chunk() {
            Ok(chunk) => !chunk.is_empty(),
            Err(_) => false,
        }
    }

    fn fail(&mut self, why: Fault) -> Fault {
        self.is_mute = true;
        if !std::mem::replace(&mut self.is_closed, true) && self.is_lent {
            // What rustls would say is encrypted with a key that it does not have any more. Its description has no public name.
            let description = match &why {
                Fault::Tls(Error::AlertReceived(_)) | Fault::Truncated => None,
                Fault::Tls(Error::DecryptError) => Some(20),
                Fault::Tls(Error::PeerSentOversizedRecord) => Some(22),
                Fault::KeyIsOver => Some(80),
                _ => Some(10),
            };
            self.alert = description.map(|description| [2, description]);
        }
        why
    }

    fn refuse_plain(&mut self) -> Fault {
        // So that rustls says what a TLS peer says: an alert, which the other end may know for one.
        let _ = self.connection.read_tls(&mut [0xff_u8; 5].as_slice());
        let _ = self.connection.process_new_packets();
        self.fail(Fault::NotTls)
    }

    /// Returns whether the handshake goes on.
    pub fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Returns whether the peer has said good-bye, and everything before it was taken.
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Notes that the beginning is over: from now on received bytes are the session's, and without a limit.
    pub(crate) fn open(&mut self) {
        self.is_open = true;
    }

    /// Returns the key that the peer has proved to have.
    pub fn peer_key(&self) -> Option<PublicKey> {
        let sent = self.connection.peer_certificates()?;
        PublicKey::from_spki(sent.first()?)
    }

    /// Encrypts bytes, which then are in the output. Nothing is sent before the handshake is over, as it is not known to whom, nor after a
    /// fault or [`close`](Self::close).
    pub fn send(&mut self, slices: &[IoSlice<'_>]) {
        if !self.is_closed && !self.is_lent && !self.connection.is_handshaking() {
            let len: usize = slices.iter().map(|slice| slice.len()).sum();
            self.records.0 += len.div_ceil(RECORD_MAX_BYTES) as u64;
            // Without a limit it takes all of them and cannot fail.
            let _ = self.connection.writer().write_vectored(slices);
        }
    }

    /// Says good-bye: nothing is sent afterwards.
    pub fn close(&mut self) {
        if std::mem::replace(&mut self.is_closed, true) {
            return;
        }
        if self.is_lent {
            self.alert = Some(CLOSE_NOTIFY);
        } else {
            self.connection.send_close_notify();
        }
    }

    /// Returns whether there is output. There is none after the key was [lent](Self::lend).
    pub fn has_output(&self) -> bool {
        !self.is_lent && self.connection.wants_write()
    }

    /// Appends all output to `into`.
    pub fn take_output(&mut self, into: &mut Vec<u8>) {
        let start = into.len();
        while self.has_output() {
            match self.connection.write_tls(into) {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
        }
        if !self.connection.is_handshaking() {
            self.records.1 += encrypted_records(into.get(start..).unwrap_or_default());
        }
    }

    // ---- lending the key ---------------------------------------------------------------------------------------------

    /// Returns the key for what this side sends next, so that somebody else can encrypt it; then [`lend`](Self::lend) has to be called before
    /// anything else. `None` while the beginning is not over or there is output, and for ever if nobody was to have the key, or it is not
    /// the first one any more.
    pub fn key_to_lend(&mut self) -> Option<LentKey> {
        if self.is_lent || self.is_closed || !self.is_open || self.secret.is_none() || self.has_answer() {
            return None;
        }
        let (due, sent) = self.records;
        let suite = self.connection.negotiated_cipher_suite()?.suite();
        // What was sent besides may have been a change of keys.
        let key = self.secret.as_ref().filter(|_| due == sent).and_then(|secret| secret.key(suite, sent));
        if key.is_none() {
            self.secret = None;
        }
        key
    }

    /// Returns whether [`key_to_lend`](Self::key_to_lend) may return a key some time.
    pub(crate) fn may_lend(&self) -> bool {
        self.secret.is_some()
    }

    /// Notes whether somebody else encrypts from now on what this side sends, with the key that
    /// [`key_to_lend`](Self::key_to_lend) has returned.
    pub fn lend(&mut self, is_taken: bool) {
        self.is_lent = is_taken;
        self.secret = None;
    }

    /// Returns what who has the key is to send as an alert, behind everything else.
    pub fn alert(&self) -> Option<[u8; 2]> {
        self.alert
    }

    /// Notes that the alert was sent.
    pub fn handle_alert_sent(&mut self) {
        self.alert = None;
        self.is_mute = true;
    }

    /// Returns whether who has the key may send nothing more but the alert.
    pub fn is_mute(&self) -> bool {
        self.is_mute
    }

    /// Handles the end of the incoming bytes.
    ///
    /// # Errors
    /// The peer has not said good-bye.
    pub fn handle_eof(&self) -> Result<(), Fault> {
        if self.is_ended { Ok(()) } else { Err(Fault::Truncated) }
    }
}

/// Returns the number of encrypted records in whole records.
fn encrypted_records(mut bytes: &[u8]) -> u64 {
    let mut count = 0;
    while let [kind, _, _, high, low, rest @ ..] = bytes {
        count += u64::from(*kind == ENCRYPTED);
        bytes = rest.get(usize::from(u16::from_be_bytes([*high, *low]))..).unwrap_or_default();
    }
    count
}

/// Returns whether bytes that were received without encryption are how a TLS worker refuses them: an alert.
pub fn is_alert(bytes: &[u8]) -> bool {
    matches!(bytes, [ALERT, 3, ..])
}

/// Returns whether bytes begin with a whole record of a TLS handshake; `None` if they begin with none.
pub fn is_hello(bytes: &[u8]) -> Option<bool> {
    let head = [HANDSHAKE, 3];
    if !bytes.iter().zip(head).all(|(byte, expected)| *byte == expected) {
        return None;
    }
    let [_, _, _, high, low, record @ ..] = bytes else { return Some(false) };
    Some(record.len() >= usize::from(u16::from_be_bytes([*high, *low])))
}

/// What a worker that wants TLS answers to a client that speaks without: a fatal alert, `unexpected_message`.
pub const REFUSAL_OF_PLAIN: [u8; 7] = [ALERT, 3, 3, 0, 2, 2, 10];

impl From<Fault> for io::Error {
    fn from(fault: Fault) -> Self {
        let kind = match fault {
            Fault::Refused(_) | Fault::Changed(_) | Fault::Uncertified(_) | Fault::Revoked(_) => {
                ErrorKind::PermissionDenied
            }
            Fault::Truncated => ErrorKind::UnexpectedEof,
            _ => ErrorKind::InvalidData,
        };
        Self::new(kind, fault)
    }
}
