//! What both ends say before HIPR begins: inside the encrypted channel, and without one if the session is to outlive its connection.
//! `docs/identity.md` has every byte of it.
//!
//! The client sends one preamble and goes on with HIPR at once; the worker sends one, and then its replies. So it costs no round trip.

use hipr_resume::{Claim, Terms};

use crate::Token;

/// What a preamble begins with.
pub const MAGIC: [u8; 4] = *b"HIPS";
/// The version that this crate speaks.
pub const VERSION: u16 = 1;
/// Length of the part before the fields.
pub const HEAD_BYTES: usize = 8;
/// Maximum length of the fields.
pub const FIELDS_MAX_BYTES: usize = 1024;
/// Maximum length of the text of a refusal.
pub const REFUSAL_MAX_BYTES: usize = 512;

/// Kind of the field with an invitation's token.
const TOKEN: u16 = 1;
/// Kind of the field with the text of a refusal.
const REFUSAL: u16 = 1;
/// Kind of the field with a claim or with the terms of a session: from now on, frames.
const RESUME: u16 = 2;
/// Kind of the field with the route of a session, in a preamble of its own before everything else.
const ROUTE: u16 = 3;
/// Kind of the field with the token of a capability.
const CAPABILITY: u16 = 4;
/// Kinds from here on may be ignored by those that do not know them.
const OPTIONAL: u16 = 0x8000;
/// Kind of the field with a user's certificate. A worker that knows none may know the user's key.
const CERTIFICATE: u16 = 0x8001;

/// What a client says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// The token of an invitation.
    pub token: Option<Token>,
    /// Which session the connection is for, if the session is to outlive it; frames follow.
    pub claim: Option<Claim>,
    /// To which process of the worker the connection is to be passed. Stands alone, before what that process is told.
    pub route: Option<u64>,
    /// The bytes of the user's certificate, which are not looked at before they are needed.
    pub certificate: Option<Vec<u8>>,
    /// The token of a capability to read memory of a session, by which another worker is let in, whatever its key is.
    pub capability: Option<[u8; 32]>,
}

/// What a worker answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Why the client may not come in; `None` if it may.
    pub refusal: Option<String>,
    /// The terms of the session that was claimed; frames follow.
    pub terms: Option<Terms>,
}

impl Hello {
    /// Returns the preamble's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let token = self.token.as_ref().map(|token| field(TOKEN, token.bytes()));
        let claim = self.claim.map(|claim| field(RESUME, &claim.to_bytes()));
        let route = self.route.map(|route| field(ROUTE, &route.to_le_bytes()));
        let certificate = self.certificate.as_ref().map(|certificate| field(CERTIFICATE, certificate));
        let capability = self.capability.map(|token| field(CAPABILITY, &token));
        with_head(&[token, claim, route, certificate, capability].map(Option::unwrap_or_default).concat())
    }

    /// Reads the fields.
    ///
    /// # Errors
    /// They are not well-formed, or there is one that this version does not know and may not ignore.
    pub fn from_fields(bytes: &[u8]) -> Result<Self, &'static str> {
        let mut hello = Self::default();
        each_field(bytes, |kind, value| match kind {
            TOKEN => {
                let token = Token::from_bytes(value).ok_or("a token has 32 bytes")?;
                hello.token.replace(token).map_or(Ok(()), |_| Err("two tokens"))
            }
            RESUME => {
                let claim = Claim::from_bytes(value).ok_or("a claim has 44 bytes")?;
                hello.claim.replace(claim).map_or(Ok(()), |_| Err("two claims"))
            }
            ROUTE => {
                let route = value.try_into().map_err(|_| "a route has 8 bytes")?;
                hello.route.replace(u64::from_le_bytes(route)).map_or(Ok(()), |_| Err("two routes"))
            }
            CAPABILITY => {
                let token = value.try_into().map_err(|_| "the token of a capability has 32 bytes")?;
                hello.capability.replace(token).map_or(Ok(()), |_| Err("two capabilities"))
            }
            CERTIFICATE => {
                hello.certificate.replace(value.to_vec()).map_or(Ok(()), |_| Err("two certificates"))
            }
            _ => unknown(kind),
        })?;
        Ok(hello)
    }
}

impl Answer {
    /// Returns the preamble's bytes; a text that is too long is cut.
    pub fn to_bytes(&self) -> Vec<u8> {
        let cut = |text: &str| {
            text.char_indices()
                .map(|(at, letter)| at + letter.len_utf8())
                .take_while(|end| *end <= REFUSAL_MAX_BYTES)
                .last()
        };
        let refusal = self
            .refusal
            .as_deref()
            .map(|text| field(REFUSAL, text.as_bytes().get(..cut(text).unwrap_or(0)).unwrap_or_default()));
        let terms = self.terms.map(|terms| field(RESUME, &terms.to_bytes()));
        with_head(&[refusal, terms].map(Option::unwrap_or_default).concat())
    }

    /// Reads the fields.
    ///
    /// # Errors
    /// As [`Hello::from_fields`].
    pub fn from_fields(bytes: &[u8]) -> Result<Self, &'static str> {
        let mut answer = Self::default();
        each_field(bytes, |kind, value| match kind {
            REFUSAL if value.len() > REFUSAL_MAX_BYTES => Err("the text is too long"),
            REFUSAL => {
                let text = std::str::from_utf8(value).map_err(|_| "the text is not UTF-8")?;
                answer.refusal.replace(text.to_owned()).map_or(Ok(()), |_| Err("two refusals"))
            }
            RESUME => {
                let terms = Terms::from_bytes(value).ok_or("terms have 28 bytes")?;
                answer.terms.replace(terms).map_or(Ok(()), |_| Err("terms twice"))
            }
            _ => unknown(kind),
        })?;
        Ok(answer)
    }
}

/// Reads the part before the fields; returns the length of the fields.
///
/// # Errors
/// It is none, of another version, or the fields are too long.
pub fn fields_len(head: [u8; HEAD_BYTES]) -> Result<usize, &'static str> {
    let [m0, m1, m2, m3, v0, v1, l0, l1] = head;
    if [m0, m1, m2, m3] != MAGIC {
        return Err("the bytes are none");
    }
    if u16::from_le_bytes([v0, v1]) != VERSION {
        return Err("its version is not 1");
    }
    let len = usize::from(u16::from_le_bytes([l0, l1]));
    if len > FIELDS_MAX_BYTES { Err("it is too long") } else { Ok(len) }
}

/// Returns whether bytes begin with a whole preamble; `None` if they do not begin with one.
pub fn is_whole(bytes: &[u8]) -> Option<bool> {
    let Some(head) = bytes.first_chunk::<HEAD_BYTES>() else {
        return (!bytes.is_empty() && MAGIC.starts_with(bytes.get(..MAGIC.len().min(bytes.len()))?))
            .then_some(false);
    };
    fields_len(*head).ok().map(|len| bytes.len() >= HEAD_BYTES + len)
}

/// Reads the route of a whole preamble that has nothing else; returns it with the length of the preamble in bytes.
pub fn read_route(bytes: &[u8]) -> Option<(u64, usize)> {
    let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
    let len = fields_len(*head).ok()?;
    match Hello::from_fields(rest.get(..len)?) {
        Ok(Hello { route: Some(route), token: None, claim: None, certificate: None, capability: None }) => {
            Some((route, HEAD_BYTES + len))
        }
        _ => None,
    }
}

fn with_head(fields: &[u8]) -> Vec<u8> {
    // Fields are at most as long as a refusal.
    let len = u16::try_from(fields.len()).unwrap_or_default();
    [&MAGIC[..], &VERSION.to_le_bytes(), &len.to_le_bytes(), fields].concat()
}

fn field(kind: u16, value: &[u8]) -> Vec<u8> {
    let len = u16::try_from(value.len()).unwrap_or_default();
    [&kind.to_le_bytes()[..], &len.to_le_bytes(), value].concat()
}

fn unknown(kind: u16) -> Result<(), &'static str> {
    if kind < OPTIONAL { Err("a field that is not known") } else { Ok(()) }
}

fn each_field(
    mut bytes: &[u8],
    mut each: impl FnMut(u16, &[u8]) -> Result<(), &'static str>,
) -> Result<(), &'static str> {
    while let Some((head, rest)) = bytes.split_first_chunk::<4>() {
        let [k0, k1, l0, l1] = *head;
        let (kind, len) = (u16::from_le_bytes([k0, k1]), u16::from_le_bytes([l0, l1]));
        let (value, rest) = rest.split_at_checked(len.into()).ok_or("a field is cut off")?;
        each(kind, value)?;
        bytes = rest;
    }
    if bytes.is_empty() { Ok(()) } else { Err("a field is cut off") }
}

/// Collects a preamble from pieces.
#[derive(Debug, Default)]
pub struct Collected {
    bytes: Vec<u8>,
}

impl Collected {
    /// Returns how many bytes are wanted before [`fields`](Self::fields) can be read; 0 if that is now.
    ///
    /// # Errors
    /// As [`fields_len`].
    pub fn wanted(&self) -> Result<usize, &'static str> {
        let whole = match self.bytes.first_chunk::<HEAD_BYTES>() {
            Some(head) => HEAD_BYTES + fields_len(*head)?,
            None => HEAD_BYTES,
        };
        Ok(whole.saturating_sub(self.bytes.len()))
    }

    /// Adds bytes, no more than are wanted.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes what belongs to the preamble off the front of `bytes`; returns whether it is whole.
    ///
    /// # Errors
    /// As [`fields_len`].
    pub fn take(&mut self, bytes: &mut &[u8]) -> Result<bool, &'static str> {
        loop {
            let wanted = self.wanted()?;
            if wanted == 0 {
                return Ok(true);
            }
            let (piece, rest) = bytes.split_at_checked(wanted.min(bytes.len())).unwrap_or_default();
            self.push(piece);
            *bytes = rest;
            if piece.len() < wanted {
                return Ok(false);
            }
        }
    }

    /// Returns the bytes of the fields.
    pub fn fields(&self) -> &[u8] {
        self.bytes.get(HEAD_BYTES..).unwrap_or_default()
    }
}
