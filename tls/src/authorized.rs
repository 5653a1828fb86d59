//! The file of the keys that may use a worker.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::files::{self, FileError, each_line};
use crate::key::sha256;
use crate::{PublicKey, Size};

/// The most keys of a file.
const KEYS_MAX: usize = 10_000;
const TENANT_MAX_BYTES: usize = 64;

/// What a client may do: the tenant it belongs to, and that one's limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The client's key.
    pub key: PublicKey,
    /// The tenant: who is meant, in logs and records.
    pub tenant: String,
    /// The most memory of a session, in bytes, if the line says so.
    pub memory_max_bytes: Option<u64>,
    /// The most sessions that the tenant may have when this key begins one, if the line says so.
    pub sessions_max: Option<u32>,
    /// How much of the device's time the tenant gets in relation to others that want some.
    pub weight: u32,
    /// The longest time of a kernel, in seconds, if the line says so.
    pub kernel_timeout_s: Option<u32>,
    /// The most sessions that the tenant may begin in a second, if the line says so.
    pub connections_per_second: Option<u32>,
    /// The most requests of the tenant's that are read in a second, if the line says so.
    pub requests_per_second: Option<u32>,
    /// The most sessions of the tenant's that are kept while they have no connection, if the line says so.
    pub parked_max: Option<u32>,
}

impl Grant {
    /// Returns what a key gets whose line says nothing but the tenant.
    pub fn new(key: PublicKey, tenant: &str) -> Self {
        let tenant = tenant.to_owned();
        Self {
            key,
            tenant,
            memory_max_bytes: None,
            sessions_max: None,
            weight: 1,
            kernel_timeout_s: None,
            connections_per_second: None,
            requests_per_second: None,
            parked_max: None,
        }
    }

    /// Returns a number that stands for the tenant, and no other as far as anybody can make it so.
    pub fn tenant_number(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = sha256(self.tenant.as_bytes());
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }
}

/// The most sessions that a line can give a tenant.
const SESSIONS_MAX: u32 = 1 << 16;
/// The highest rate.
const RATE_MAX: u32 = 1_000_000_000;
/// The most weight.
const WEIGHT_MAX: u32 = 100;

/// The words of a line behind the key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Terms {
    tenant: Option<String>,
    memory_max: Option<Size>,
    sessions_max: Option<u32>,
    weight: Option<u32>,
    kernel_timeout_s: Option<u32>,
    connections_per_second: Option<u32>,
    requests_per_second: Option<u32>,
    parked_max: Option<u32>,
}

/// Parses a number from 1 to `max`.
fn number(text: &str, max: u32) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=max).contains(number));
    number.ok_or_else(|| format!("'{text}' is not a number from 1 to {max}"))
}

impl Terms {
    /// Reads `tenant=NAME`, `memory-max=SIZE`, `sessions-max=N`, `parked-max=N`, `weight=N`, `kernel-timeout=SECONDS`,
    /// `connections-per-second=N` and `requests-per-second=N`, in any order, each once at most.
    pub(crate) fn parse(words: &mut dyn Iterator<Item = &str>) -> Result<Self, String> {
        let mut terms = Self::default();
        for word in words {
            let is_new = match word.split_once('=') {
                Some(("tenant", name)) => {
                    check_tenant(name)?;
                    terms.tenant.replace(name.to_owned()).is_none()
                }
                Some(("memory-max", size)) => {
                    let size = size.parse().map_err(|why| format!("memory-max: {why}"))?;
                    terms.memory_max.replace(size).is_none()
                }
                Some((name @ "sessions-max", text)) => {
                    let count = number(text, SESSIONS_MAX).map_err(|why| format!("{name}: {why}"))?;
                    terms.sessions_max.replace(count).is_none()
                }
                Some((name @ "parked-max", text)) => {
                    let count = number(text, SESSIONS_MAX).map_err(|why| format!("{name}: {why}"))?;
                    terms.parked_max.replace(count).is_none()
                }
                Some((name @ "weight", text)) => {
                    let weight = number(text, WEIGHT_MAX).map_err(|why| format!("{name}: {why}"))?;
                    terms.weight.replace(weight).is_none()
                }
                Some((name @ "kernel-timeout", text)) => {
                    let seconds = number(text, u32::MAX).map_err(|why| format!("{name}: {why}"))?;
                    terms.kernel_timeout_s.replace(seconds).is_none()
                }
                Some((name @ "connections-per-second", text)) => {
                    let count = number(text, RATE_MAX).map_err(|why| format!("{name}: {why}"))?;
                    terms.connections_per_second.replace(count).is_none()
                }
                Some((name @ "requests-per-second", text)) => {
                    let count = number(text, RATE_MAX).map_err(|why| format!("{name}: {why}"))?;
                    terms.requests_per_second.replace(count).is_none()
                }
                _ => {
                    return Err(format!(
                        "'{word}' is none of tenant=NAME, memory-max=SIZE, sessions-max=N, parked-max=N, weight=N, kernel-timeout=SECONDS, connections-per-second=N and requests-per-second=N"
                    ));
                }
            };
            if !is_new {
                return Err(format!("'{word}' says again what the line has said"));
            }
        }
        Ok(terms)
    }

    pub(crate) fn new(tenant: Option<String>, memory_max: Option<Size>) -> Result<Self, String> {
        tenant.as_deref().map_or(Ok(()), check_tenant)?;
        Ok(Self { tenant, memory_max, ..Self::default() })
    }

    pub(crate) fn for_key(self, key: PublicKey) -> Grant {
        let tenant = self.tenant.unwrap_or_else(|| key.fingerprint().to_string());
        Grant {
            memory_max_bytes: self.memory_max.map(|size| size.0),
            sessions_max: self.sessions_max,
            weight: self.weight.unwrap_or(1),
            kernel_timeout_s: self.kernel_timeout_s,
            connections_per_second: self.connections_per_second,
            requests_per_second: self.requests_per_second,
            parked_max: self.parked_max,
            ..Grant::new(key, &tenant)
        }
    }
}

impl fmt::Display for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(tenant) = &self.tenant {
            write!(f, " tenant={tenant}")?;
        }
        if let Some(size) = self.memory_max {
            write!(f, " memory-max={size}")?;
        }
        for (name, number) in [
            ("sessions-max", self.sessions_max),
            ("parked-max", self.parked_max),
            ("weight", self.weight),
            ("kernel-timeout", self.kernel_timeout_s),
            ("connections-per-second", self.connections_per_second),
            ("requests-per-second", self.requests_per_second),
        ] {
            if let Some(number) = number {
                write!(f, " {name}={number}")?;
            }
        }
        Ok(())
    }
}

fn check_tenant(name: &str) -> Result<(), String> {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@".contains(&byte);
    if (1..=TENANT_MAX_BYTES).contains(&name.len()) && name.bytes().all(is_good) {
        Ok(())
    } else {
        Err(format!(
            "a tenant's name has 1 to {TENANT_MAX_BYTES} letters, digits, dots, dashes, underscores or @"
        ))
    }
}

/// The keys of a file, and what each may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Authorized(HashMap<PublicKey, Grant>);

impl Authorized {
    /// Reads lines such as `hipr-ed25519 KEY tenant=NAME memory-max=16G`; `#` begins a comment. A line that names no tenant makes the
    /// key's fingerprint the tenant.
    ///
    /// # Errors
    /// The number of a line that is none of these, or has a key that another has, and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut keys = HashMap::new();
        each_line(text, |words| {
            let (name, digits) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let key = PublicKey::from_words(name, digits).map_err(|why| why.to_string())?;
            let grant = Terms::parse(words)?.for_key(key);
            if keys.len() >= KEYS_MAX {
                return Err(format!("the file has more than {KEYS_MAX} keys"));
            }
            match keys.insert(key, grant) {
                None => Ok(()),
                Some(_) => Err("an earlier line has this key".to_owned()),
            }
        })?;
        Ok(Self(keys))
    }

    /// Returns what a key may do, if it is authorized.
    pub fn grant(&self, key: &PublicKey) -> Option<&Grant> {
        self.0.get(key)
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether nobody is authorized.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A file of authorized keys, which is read again when it has changed.
#[derive(Debug)]
pub struct AuthorizedFile {
    path: PathBuf,
    last: Mutex<Option<(Stamp, Authorized)>>,
}

/// How a file looked when it was read: device, inode, length, and the time of its last change in nanoseconds.
type Stamp = (u64, u64, u64, i128);

impl AuthorizedFile {
    /// Names a file, which is read when it is first asked for a key.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), last: Mutex::default() }
    }

    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what a key may do, if it is authorized now.
    ///
    /// # Errors
    /// It cannot be read, others than its owner may change it, or a line is wrong, which the error names. Then it authorizes nobody.
    pub fn grant(&self, key: &PublicKey) -> Result<Option<Grant>, FileError> {
        self.read(|authorized| authorized.grant(key).cloned())
    }

    /// Returns the number of authorized keys.
    ///
    /// # Errors
    /// As [`grant`](Self::grant).
    pub fn count(&self) -> Result<usize, FileError> {
        self.read(Authorized::len)
    }

    fn read<T>(&self, look: impl FnOnce(&Authorized) -> T) -> Result<T, FileError> {
        // What is kept is whole whenever the lock is free, so poison says nothing.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = self.stamp()?;
        if let Some((_, authorized)) = last.as_ref().filter(|(read, _)| *read == stamp) {
            return Ok(look(authorized));
        }
        *last = None;
        let text = files::read(&self.path)?;
        let authorized = Authorized::parse(&text).map_err(|why| FileError::in_line(&self.path, why))?;
        let said = look(&authorized);
        // A change while it was read shows in the stamp, and the file is then read again.
        *last = Some((stamp, authorized));
        Ok(said)
    }

    fn stamp(&self) -> Result<Stamp, FileError> {
        let file = fs::metadata(&self.path).map_err(|why| FileError::new(&self.path, why))?;
        if file.mode() & 0o022 != 0 {
            let mode = file.mode() & 0o7777;
            return Err(FileError::new(
                &self.path,
                format!("others may change this file (mode {mode:04o}): chmod go-w it"),
            ));
        }
        let time = i128::from(file.ctime()) * 1_000_000_000 + i128::from(file.ctime_nsec());
        Ok((file.dev(), file.ino(), file.len(), time))
    }

    /// Adds a key, unless it is there.
    pub(crate) fn add(&self, key: PublicKey, terms: &Terms) -> Result<(), FileError> {
        let added = files::open_alone(&self.path).and_then(|file| {
            let text = files::read_text(&file)?;
            let is_there = Authorized::parse(&text).is_ok_and(|authorized| authorized.grant(&key).is_some());
            if is_there { Ok(()) } else { files::append_line(&file, &text, &format!("{key}{terms}")) }
        });
        added.map_err(|why| FileError::new(&self.path, why))
    }
}
