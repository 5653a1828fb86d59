//! The file of the workers whose keys a client knows.

use std::path::{Path, PathBuf};

use crate::Fingerprint;
use crate::files::{self, FileError, each_line};

/// A file with a line for each worker: `HOST:PORT SHA256:…`.
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

    /// Returns the fingerprint of the worker at `HOST:PORT`, if the file has it.
    ///
    /// # Errors
    /// The file cannot be read, or a line is wrong; the error names it.
    pub fn find(&self, worker: &str) -> Result<Option<Fingerprint>, FileError> {
        match files::read(&self.path) {
            Ok(text) => self.find_in(&text, worker),
            Err(_) if !self.exists()? => Ok(None),
            Err(why) => Err(why),
        }
    }

    fn exists(&self) -> Result<bool, FileError> {
        self.path.try_exists().map_err(|why| FileError::new(&self.path, why))
    }

    fn find_in(&self, text: &str, worker: &str) -> Result<Option<Fingerprint>, FileError> {
        Self::parse(text, worker).map_err(|why| FileError::in_line(&self.path, why))
    }

    /// Returns the fingerprint of the worker at `HOST:PORT` in the text of a file.
    ///
    /// # Errors
    /// The number of a wrong line, and what is wrong with it.
    pub fn parse(text: &str, worker: &str) -> Result<Option<Fingerprint>, (usize, String)> {
        let mut found = None;
        each_line(text, |words| {
            let (name, fingerprint) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let fingerprint: Fingerprint = fingerprint.parse().map_err(|why| format!("{why}"))?;
            if words.next().is_some() {
                return Err("a line has an address and a fingerprint, and nothing else".to_owned());
            }
            if name.eq_ignore_ascii_case(worker) && found.replace(fingerprint).is_some() {
                return Err(format!("an earlier line has {worker}"));
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Adds a worker that the file does not have; returns false if another process has added one at this address.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&self, worker: &str, fingerprint: Fingerprint) -> Result<bool, FileError> {
        let failed = |why: std::io::Error| FileError::new(&self.path, why);
        let file = files::open_alone(&self.path).map_err(failed)?;
        let text = files::read_text(&file).map_err(failed)?;
        if self.find_in(&text, worker)?.is_some() {
            return Ok(false);
        }
        files::append_line(&file, &text, &format!("{worker} {fingerprint}")).map_err(failed)?;
        Ok(true)
    }
}
