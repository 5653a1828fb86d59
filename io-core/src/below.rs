//! What lies between HIPR and the socket of a connection that has more than the two: encryption, the frames of a session that outlives its
//! connection, or both.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use hipr_proto::Outbox;
use hipr_resume::{Claim, Terms};
use hipr_tls::preamble::{Answer, Collected, Hello, MAGIC};
use hipr_tls::{Admission, Fault, LentKey, PublicKey, TurnedAway};

use crate::resumed::Resumed;
use crate::secured::Secured;
use crate::{Body, Config, End, Peer, Pool};

/// The layers of one connection.
#[derive(Debug)]
pub(crate) struct Below {
    crypt: Option<Secured>,
    /// What has come of the preamble, where it is not the encryption's.
    door: Option<Collected>,
    /// What the preamble without encryption claims, until that is answered.
    claim: Option<Claim>,
    resumed: Option<Resumed>,
    /// Decrypted bytes from `clear_at` on that were not taken out of their frames.
    clear: Vec<u8>,
    clear_at: usize,
    clear_end: usize,
    /// Bytes of the socket behind a claim that was not answered.
    held: Vec<u8>,
    /// Whether a claim was just answered: the encryption may have bytes behind it.
    was_answered: bool,
    /// Whether requests are kept in their frames' order, unread, because the dispatch has enough; only acknowledgements are of use.
    stows: bool,
}

impl Below {
    fn new(crypt: Option<Secured>) -> Self {
        let door = crypt.is_none().then(Collected::default);
        let (claim, resumed, clear, held) = Default::default();
        Self {
            crypt,
            door,
            claim,
            resumed,
            clear,
            clear_at: 0,
            clear_end: 0,
            held,
            was_answered: false,
            stows: false,
        }
    }

    /// Creates the layers of a connection that is encrypted, if it is to be.
    pub(crate) fn encrypted(peer: Peer, config: &Config) -> Option<Self> {
        Secured::new(peer, config).map(|crypt| Self::new(Some(crypt)))
    }

    /// Creates the layers of a connection without encryption whose first bytes are these, if they are not HIPR's.
    pub(crate) fn in_the_clear(first: &[u8]) -> Option<Self> {
        let is_preamble =
            !first.is_empty() && first.iter().zip(MAGIC).all(|(byte, expected)| *byte == expected);
        is_preamble.then(|| Self::new(None))
    }

    // ---- the session -------------------------------------------------------------------------------------------------

    /// Returns the session that the client claims, and the key that it has shown; `None` when that was answered.
    pub(crate) fn claim(&self) -> Option<(Claim, Option<PublicKey>)> {
        match &self.crypt {
            None => self.claim.map(|claim| (claim, None)),
            Some(crypt) => crypt.claim(),
        }
    }

    /// Answers the claim.
    pub(crate) fn answer(
        &mut self,
        terms: Result<Terms, String>,
        into: &mut VecDeque<Outbox<Body>>,
    ) -> usize {
        self.was_answered = true;
        if let Some(crypt) = &mut self.crypt {
            crypt.answer(terms);
            return crypt.take_output(into);
        }
        self.claim = None;
        let bytes = Answer { terms: terms.as_ref().ok().copied(), refusal: terms.err() }.to_bytes();
        let len = bytes.len();
        let mut outbox = Outbox::new();
        outbox.put_inline(Body::from(bytes));
        into.push_back(outbox);
        len
    }

    pub(crate) fn resumed(&mut self) -> Option<&mut Resumed> {
        self.resumed.as_mut()
    }

    pub(crate) fn session(&self) -> Option<&Resumed> {
        self.resumed.as_ref()
    }

    pub(crate) fn take_session(&mut self) -> Option<Resumed> {
        self.resumed.take()
    }

    pub(crate) fn set_session(&mut self, resumed: Resumed) {
        self.resumed = Some(resumed);
    }

    /// Forgets the connection; the session stays.
    pub(crate) fn cut(&mut self) {
        (self.crypt, self.door, self.claim) = (None, None, None);
        (self.clear, self.clear_at, self.clear_end, self.held) = (Vec::new(), 0, 0, Vec::new());
        if let Some(resumed) = &mut self.resumed {
            resumed.endpoint().cut();
            resumed.count();
        }
    }

    // ---- encryption by the kernel ------------------------------------------------------------------------------------

    /// Returns the key with which the kernel can encrypt, as [`Secured::key_to_lend`] does, for a client that was let in and has its session.
    pub(crate) fn key_to_lend(&mut self) -> Option<LentKey> {
        let crypt = self.crypt.as_mut()?;
        if crypt.grant().is_none() || crypt.claim().is_some() {
            return None;
        }
        let outlives = self.resumed.as_ref().is_some_and(|resumed| resumed.keeps_ms().is_some());
        crypt.key_to_lend(outlives)
    }

    pub(crate) fn crypt(&self) -> Option<&Secured> {
        self.crypt.as_ref()
    }

    pub(crate) fn crypt_mut(&mut self) -> Option<&mut Secured> {
        self.crypt.as_mut()
    }

    // ---- what arrives ------------------------------------------------------------------------------------------------

    /// Sets whether requests are kept unread.
    pub(crate) fn set_stows(&mut self, stows: bool) {
        self.stows = stows;
    }

    /// Keeps bytes of the socket until the claim is answered.
    pub(crate) fn hold(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// Takes the bytes that were [held](Self::hold).
    pub(crate) fn take_held(&mut self) -> Vec<u8> {
        self.was_answered = false;
        std::mem::take(&mut self.held)
    }

    /// Returns whether bytes have arrived that were not given out, although the socket has none.
    pub(crate) fn has_held(&self) -> bool {
        let stowed = self.resumed.as_ref().is_some_and(|resumed| resumed.stowed_bytes() > 0);
        let has_bytes = stowed || self.clear_at < self.clear_end || !self.held.is_empty();
        self.claim().is_none() && (has_bytes || self.was_answered)
    }

    /// Turns bytes of the socket into bytes of HIPR, until `into` is full or nothing is left of `raw`; returns how many there are. While a
    /// claim is not answered nothing more is read. What lies between two layers is in a buffer of the pool.
    ///
    /// # Errors
    /// Why the connection ends. There may be output.
    pub(crate) fn receive(
        &mut self,
        raw: &mut &[u8],
        into: &mut [u8],
        pool: &mut Pool,
    ) -> Result<usize, End> {
        if self.door.is_some() {
            self.enter(raw).map_err(End::Channel)?;
        }
        let Self { crypt, resumed, clear, clear_at, clear_end, stows, .. } = self;
        let Some(resumed) = resumed else {
            return match crypt {
                Some(crypt) => crypt.receive(raw, into).map_err(End::Channel),
                None => Ok(0),
            };
        };
        let mut take = |bytes: &mut &[u8], room: &mut [u8]| {
            let end = resumed.endpoint();
            let taken = if *stows { end.stow(bytes).map(|()| 0) } else { end.receive(bytes, room) };
            taken.map_err(End::Frames)
        };
        let Some(crypt) = crypt else { return take(raw, into) };
        let mut len = 0;
        loop {
            let mut left = clear.get(*clear_at..*clear_end).unwrap_or_default();
            len += take(&mut left, into.get_mut(len..).unwrap_or_default())?;
            *clear_at = *clear_end - left.len();
            if len == into.len() {
                return Ok(len);
            }
            if clear.is_empty() {
                *clear = pool.buffer();
            }
            let decrypted = crypt.receive(raw, clear).map_err(End::Channel);
            (*clear_at, *clear_end) = (0, *decrypted.as_ref().unwrap_or(&0));
            if decrypted? == 0 {
                // A connection that rests keeps no buffer.
                pool.keep_buffer(std::mem::take(clear));
                return Ok(len);
            }
        }
    }

    /// Reads the preamble of a connection without encryption.
    fn enter(&mut self, raw: &mut &[u8]) -> Result<(), Fault> {
        let Some(door) = &mut self.door else { return Ok(()) };
        if !door.take(raw).map_err(Fault::Preamble)? {
            return Ok(());
        }
        let hello = Hello::from_fields(door.fields()).map_err(Fault::Preamble)?;
        if hello.token.is_some() || hello.route.is_some() || hello.claim.is_none() {
            return Err(Fault::Preamble("without encryption it is for a claim alone"));
        }
        (self.door, self.claim) = (None, hello.claim);
        Ok(())
    }

    /// Returns what the client may do, once it has proved who it is.
    pub(crate) fn grant(&self) -> Option<Arc<Admission>> {
        self.crypt.as_ref()?.grant()
    }

    /// Returns what is known of a client that was not let in.
    pub(crate) fn turned_away(&self) -> Option<&TurnedAway> {
        self.crypt.as_ref()?.turned_away()
    }

    /// Returns whether the client has said that nothing more comes, and everything before was given out.
    pub(crate) fn is_ended(&mut self) -> bool {
        match &self.resumed {
            Some(resumed) => resumed.is_ended(),
            None => self.crypt.as_mut().is_some_and(Secured::is_ended),
        }
    }

    /// Handles the end of what the socket gives.
    ///
    /// # Errors
    /// The client has not said that it is the end.
    pub(crate) fn handle_eof(&self) -> Result<(), End> {
        match (&self.resumed, &self.crypt) {
            (Some(resumed), _) if resumed.is_ended() => Ok(()),
            (Some(_), _) => Err(End::Socket(io::Error::new(ErrorKind::UnexpectedEof, "it was cut off"))),
            (None, Some(crypt)) => crypt.handle_eof().map_err(End::Channel),
            (None, None) => Ok(()),
        }
    }

    // ---- what leaves -------------------------------------------------------------------------------------------------

    /// Queues replies; returns the length in bytes of what was appended to `into` for the socket.
    pub(crate) fn queue(&mut self, outbox: Outbox<Body>, into: &mut VecDeque<Outbox<Body>>) -> usize {
        match (&mut self.resumed, &mut self.crypt) {
            (Some(resumed), _) => {
                resumed.queue(outbox);
                0
            }
            (None, Some(crypt)) => crypt.seal(outbox, into),
            // Nobody has been let in, to whom it could go.
            (None, None) => 0,
        }
    }

    /// Appends the next frames for the socket to `into`; returns their length in bytes.
    pub(crate) fn transmit(&mut self, into: &mut VecDeque<Outbox<Body>>) -> usize {
        let Some(frames) = self.resumed.as_mut().and_then(Resumed::transmit) else { return 0 };
        match &mut self.crypt {
            Some(crypt) => crypt.seal(frames, into),
            None => {
                let len = frames.len_bytes();
                into.push_back(frames);
                len
            }
        }
    }

    /// Appends what the encryption itself has to say; returns its length in bytes.
    pub(crate) fn take_output(&mut self, into: &mut VecDeque<Outbox<Body>>) -> usize {
        self.crypt.as_mut().map_or(0, |crypt| crypt.take_output(into))
    }

    /// Says good-bye, behind everything else; returns the length in bytes of what was appended.
    pub(crate) fn close(&mut self, into: &mut VecDeque<Outbox<Body>>) -> usize {
        match (&self.resumed, &mut self.crypt) {
            (Some(_), Some(crypt)) if !crypt.is_in_kernel() => 0,
            (_, Some(crypt)) => crypt.close(into),
            (_, None) => 0,
        }
    }

    /// Notes that `len` bytes were sent; returns how many of the dispatch's bytes these end.
    pub(crate) fn handle_sent(&mut self, len: usize) -> u64 {
        let ended = self.crypt.as_mut().map_or(0, |crypt| crypt.handle_sent(len));
        if self.resumed.is_some() { 0 } else { ended }
    }

    /// Returns the number of the dispatch's bytes that count as not sent.
    pub(crate) fn unsent_bytes(&self) -> usize {
        match (&self.resumed, &self.crypt) {
            (Some(resumed), _) => resumed.waiting_bytes(),
            (None, Some(crypt)) => crypt.unsent_bytes(),
            (None, None) => 0,
        }
    }
}
