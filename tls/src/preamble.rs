//! What both ends say inside the encrypted channel before HIPR begins. `docs/identity.md` has every byte of it.
//!
//! The client sends one preamble and goes on with HIPR at once; the worker sends one, and then its replies. So it costs no round trip.

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
/// Kinds from here on may be ignored by those that do not know them.
const OPTIONAL: u16 = 0x8000;

/// What a client says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// The token of an invitation.
    pub token: Option<Token>,
}

/// What a worker answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Why the client may not come in; `None` if it may.
    pub refusal: Option<String>,
}

impl Hello {
    /// Returns the preamble's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let fields = self.token.as_ref().map(|token| field(TOKEN, token.bytes()));
        with_head(&fields.unwrap_or_default())
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
            _ => Err("a field that is not known"),
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
        let fields = self
            .refusal
            .as_deref()
            .map(|text| field(REFUSAL, text.as_bytes().get(..cut(text).unwrap_or(0)).unwrap_or_default()));
        with_head(&fields.unwrap_or_default())
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
            _ => Err("a field that is not known"),
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

fn with_head(fields: &[u8]) -> Vec<u8> {
    // Fields are at most as long as a refusal.
    let len = u16::try_from(fields.len()).unwrap_or_default();
    [&MAGIC[..], &VERSION.to_le_bytes(), &len.to_le_bytes(), fields].concat()
}

fn field(kind: u16, value: &[u8]) -> Vec<u8> {
    let len = u16::try_from(value.len()).unwrap_or_default();
    [&kind.to_le_bytes()[..], &len.to_le_bytes(), value].concat()
}

fn each_field(
    mut bytes: &[u8],
    mut each: impl FnMut(u16, &[u8]) -> Result<(), &'static str>,
) -> Result<(), &'static str> {
    while let Some((head, rest)) = bytes.split_first_chunk::<4>() {
        let [k0, k1, l0, l1] = *head;
        let (kind, len) = (u16::from_le_bytes([k0, k1]), u16::from_le_bytes([l0, l1]));
        let (value, rest) = rest.split_at_checked(len.into()).ok_or("a field is cut off")?;
        if kind < OPTIONAL {
            each(kind, value)?;
        }
        bytes = rest;
    }
    if bytes.is_empty() { Ok(()) } else { Err("a field is cut off") }
}

/// Collects a preamble from pieces.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    bytes: Vec<u8>,
}

impl Collected {
    /// Returns how many bytes are wanted before [`fields`](Self::fields) can be read; 0 if that is now.
    ///
    /// # Errors
    /// As [`fields_len`].
    pub(crate) fn wanted(&self) -> Result<usize, &'static str> {
        let whole = match self.bytes.first_chunk::<HEAD_BYTES>() {
            Some(head) => HEAD_BYTES + fields_len(*head)?,
            None => HEAD_BYTES,
        };
        Ok(whole.saturating_sub(self.bytes.len()))
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn fields(&self) -> &[u8] {
        self.bytes.get(HEAD_BYTES..).unwrap_or_default()
    }
}
