//! The file of the workers whose keys a client knows.

use std::path::{Path, PathBuf};

use crate::files::{self, FileError, each_line};
use crate::pattern::{HostPatterns, host_of};
use crate::revoked::Revoked;
use crate::{Fingerprint, PublicKey};

/// What the first word of a line is that names an authority, and of one that revokes a worker's key or certificate.
const AUTHORITY: &str = "@authority";
const REVOKED: &str = "@revoked";

/// What a client knows of a worker before it connects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// The fingerprint of its key.
    pub fingerprint: Option<Fingerprint>,
    /// The authorities that sign certificates for its host.
    pub authorities: Vec<PublicKey>,
    /// Keys and certificates of workers that are of no use any more.
    pub revoked: Revoked,
}

impl Known {
    /// Reads what the text of a file says of the worker at `HOST:PORT`: a line such as `HOST:PORT SHA256:…`, lines such as
    /// `@authority HOSTS hipr-ed25519 KEY` for its host, and all lines such as `@revoked SHA256:…`.
    ///
    /// # Errors
    /// The number of a wrong line, and what is wrong with it.
    pub fn parse(text: &str, worker: &str) -> Result<Self, (usize, String)> {
        let mut known = Self::default();
        each_line(text, |words| {
            let first = words.next().unwrap_or_default();
            if first == REVOKED {
                return known.revoked.add(words);
            }
            if first == AUTHORITY {
                let hosts: HostPatterns = words.next().unwrap_or_default().parse()?;
                let (name, digits) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
                let key = PublicKey::from_words(name, digits).map_err(|why| why.to_string())?;
                if words.next().is_some() {
                    return Err("a line has @authority, hosts and a key, and nothing else".to_owned());
                }
                if hosts.matches(host_of(worker)) && !known.authorities.contains(&key) {
                    known.authorities.push(key);
                }
                return Ok(());
            }
            let fingerprint = words.next().unwrap_or_default().parse().map_err(|why| format!("{why}"))?;
            if words.next().is_some() {
                return Err("a line has an address and a fingerprint, and nothing else".to_owned());
            }
            if first.eq_ignore_ascii_case(worker) && known.fingerprint.replace(fingerprint).is_some() {
                return Err(format!("an earlier line has {worker}"));
            }
            Ok(())
        })?;
        Ok(known)
    }
}

/// A file with a line for each worker, and for each authority of workers; see [`Known::parse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownWorkers {
    path: PathBuf,
}

impl KnownWorkers {
    /// Names the file; it need not exist.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what the file says of the worker at `HOST:PORT`.
    ///
    /// # Errors
    /// The file cannot be read, or a line is wrong; the error names it.
    pub fn find(&self, worker: &str) -> Result<Known, FileError> {
        match files::read(&self.path) {
            Ok(text) => self.find_in(&text, worker),
            Err(_) if !self.exists()? => Ok(Known::default()),
            Err(why) => Err(why),
        }
    }

    fn exists(&self) -> Result<bool, FileError> {
        self.path.try_exists().map_err(|why| FileError::new(&self.path, why))
    }

    fn find_in(&self, text: &str, worker: &str) -> Result<Known, FileError> {
        Known::parse(text, worker).map_err(|why| FileError::in_line(&self.path, why))
    }

    /// Adds a worker that the file does not have; returns false if another process has added one at this address.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&self, worker: &str, fingerprint: Fingerprint) -> Result<bool, FileError> {
        let failed = |why: std::io::Error| FileError::new(&self.path, why);
        let file = files::open_alone(&self.path).map_err(failed)?;
        let text = files::read_text(&file).map_err(failed)?;
        if self.find_in(&text, worker)?.fingerprint.is_some() {
            return Ok(false);
        }
        files::append_line(&file, &text, &format!("{worker} {fingerprint}")).map_err(failed)?;
        Ok(true)
    }
}
