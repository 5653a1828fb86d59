//! Invitations: tokens that make a client's key authorized, once.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::authorized::AuthorizedFile;
use crate::files::{self, FileError, each_line};
use crate::grant::Grants;
use crate::key::{decode_32, encode_32, sha256};
use crate::{KeyError, PublicKey, Size, random_bytes};

/// The most invitations that wait at a time.
const INVITATIONS_MAX: usize = 1000;

/// The secret of an invitation: 32 random bytes, written in the base64 of URLs.
#[derive(Clone, PartialEq, Eq)]
pub struct Token([u8; Self::BYTES]);

impl Token {
    /// Length in bytes.
    pub const BYTES: usize = 32;

    fn generate() -> Result<Self, KeyError> {
        random_bytes().map(Self)
    }

    /// Parses a token as it is written.
    pub fn parse(text: &str) -> Option<Self> {
        decode_32(text).map(Self)
    }

    /// Returns the token as it is written.
    pub fn text(&self) -> String {
        encode_32(&self.0)
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn hash(&self) -> [u8; 32] {
        sha256(&self.0)
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a token")
    }
}

/// An invitation that was not used: the hash of its token, when it ends, and what it gives.
struct Waiting {
    hash: [u8; 32],
    end_s: u64,
    grants: Grants,
}

/// The invitations of a worker, in a file beside that of its authorized keys. The file has the tokens' hashes, not the tokens.
#[derive(Clone, Debug)]
pub struct Invitations {
    path: PathBuf,
}

impl Invitations {
    /// Names the file of the invitations to a worker with this file of authorized keys: `FILE.invitations`.
    pub fn beside(authorized: &Path) -> Self {
        let mut path = authorized.as_os_str().to_owned();
        path.push(".invitations");
        Self { path: path.into() }
    }

    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds an invitation that ends after `valid_for`, for a key with this tenant and limit.
    ///
    /// # Errors
    /// The tenant's name is none; the file cannot be written; there are 1000 invitations already.
    pub fn invite(
        &self,
        tenant: Option<String>,
        memory_max: Option<Size>,
        valid_for: Duration,
    ) -> Result<Token, FileError> {
        let grants = Grants::new(tenant, memory_max).map_err(|why| FileError::new(&self.path, why))?;
        let token = Token::generate().map_err(|why| FileError::new(&self.path, why))?;
        let end_s = now_s().saturating_add(valid_for.as_secs());
        self.change(|waiting| {
            if waiting.len() >= INVITATIONS_MAX {
                return Err(format!("{INVITATIONS_MAX} invitations wait already"));
            }
            waiting.push(Waiting { hash: token.hash(), end_s, grants });
            Ok(())
        })?;
        Ok(token)
    }

    /// Uses an invitation up: authorizes `key` and forgets the token. Returns false if there is no such invitation (any more).
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub(crate) fn redeem(
        &self,
        token: &Token,
        key: PublicKey,
        authorized: &AuthorizedFile,
    ) -> Result<bool, FileError> {
        if !self.path.try_exists().map_err(|why| FileError::new(&self.path, why))? {
            return Ok(false);
        }
        let hash = token.hash();
        // Forgotten first: what goes wrong afterwards costs an invitation, and never lets two in.
        let grants = self.change(|waiting| {
            let at = waiting.iter().position(|waiting| waiting.hash == hash);
            Ok(at.map(|at| waiting.swap_remove(at).grants))
        })?;
        match grants {
            Some(grants) => authorized.add(key, &grants).map(|()| true),
            None => Ok(false),
        }
    }

    /// Changes the invitations that have not ended, while no other process can.
    fn change<T>(&self, change: impl FnOnce(&mut Vec<Waiting>) -> Result<T, String>) -> Result<T, FileError> {
        let failed = |why: &dyn std::fmt::Display| FileError::new(&self.path, why);
        let mut file = files::open_alone(&self.path).map_err(|why| failed(&why))?;
        let text = files::read_text(&file).map_err(|why| failed(&why))?;
        let mut waiting = parse(&text).map_err(|why| FileError::in_line(&self.path, why))?;
        let now = now_s();
        waiting.retain(|waiting| waiting.end_s > now);
        let said = change(&mut waiting).map_err(|why| failed(&why))?;
        let text: String = waiting
            .iter()
            .map(|Waiting { hash, end_s, grants }| format!("{} until={end_s}{grants}\n", encode_32(hash)))
            .collect();
        let written =
            file.set_len(0).and_then(|()| file.write_all(text.as_bytes())).and_then(|()| file.sync_all());
        written.map_err(|why| failed(&why))?;
        Ok(said)
    }
}

fn parse(text: &str) -> Result<Vec<Waiting>, (usize, String)> {
    let mut all = Vec::new();
    each_line(text, |words| {
        let hash = words.next().and_then(decode_32);
        let end_s = words.next().and_then(|word| word.strip_prefix("until=")?.parse().ok());
        let (Some(hash), Some(end_s)) = (hash, end_s) else {
            return Err("a line has a token's hash, until=SECONDS, and what the invitation gives".to_owned());
        };
        if all.len() >= INVITATIONS_MAX {
            return Err(format!("the file has more than {INVITATIONS_MAX} invitations"));
        }
        all.push(Waiting { hash, end_s, grants: Grants::parse(words)? });
        Ok(())
    })?;
    Ok(all)
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
