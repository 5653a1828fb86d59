//! What a worker shows in the handshake: its key, and its certificate if it has one.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::files::{FileError, Stamp};
use crate::{Certificate, CertificateError, PublicKey};

/// A worker's key with the file of its certificate, which is read again when it has changed.
#[derive(Debug)]
pub(crate) struct ShownKey {
    key: PublicKey,
    /// The key alone, as rustls shows it.
    plain: Arc<CertifiedKey>,
    /// The file of the certificate, if there can be one.
    path: Option<PathBuf>,
    last: Mutex<Last>,
}

/// How the file looked when it was read, if it was there, and what is shown since.
#[derive(Debug)]
struct Last {
    stamp: Option<Stamp>,
    shown: Arc<CertifiedKey>,
}

impl ShownKey {
    /// Shows the key, and the certificate in the file at `path` once there is one.
    pub(crate) fn new(key: PublicKey, plain: Arc<CertifiedKey>, path: Option<&Path>) -> Self {
        let last = Last { stamp: None, shown: plain.clone() };
        Self { key, plain, path: path.map(Path::to_owned), last: Mutex::new(last) }
    }

    /// Shows the same key, and the certificate in this file.
    pub(crate) fn with_file(&self, path: &Path) -> Self {
        Self::new(self.key, self.plain.clone(), Some(path))
    }

    /// Returns the certificate that the file has at present.
    ///
    /// # Errors
    /// The file cannot be read, or its certificate is for another key, or a user's.
    pub(crate) fn certificate(&self) -> Result<Option<Certificate>, FileError> {
        let Some(path) = &self.path else { return Ok(None) };
        let certificate = Certificate::read(path)?;
        if let Some(certificate) = &certificate {
            let wrong = |why: CertificateError| FileError::new(path, format!("the certificate {why}"));
            certificate.worker().map_err(wrong)?;
            if certificate.key != self.key {
                return Err(wrong(CertificateError::OtherKey(certificate.key.fingerprint())));
            }
        }
        Ok(certificate)
    }

    /// Returns the key with the certificate, as rustls shows them. A file that cannot be read changes nothing.
    pub(crate) fn current(&self) -> Arc<CertifiedKey> {
        // What is kept is whole whenever the lock is free, so poison says nothing.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(path) = &self.path else { return last.shown.clone() };
        let stamp = match fs::metadata(path) {
            Ok(file) => Some(Stamp::of(&file)),
            Err(why) if why.kind() == ErrorKind::NotFound => None,
            Err(why) => {
                tracing::error!(file = %path.display(), %why, "the worker's certificate stays as it was");
                return last.shown.clone();
            }
        };
        if stamp != last.stamp {
            match self.certificate() {
                Ok(certificate) => {
                    let ocsp = certificate.map(|certificate| certificate.bytes().to_vec());
                    let shown = Arc::new(CertifiedKey { ocsp, ..CertifiedKey::clone(&self.plain) });
                    *last = Last { stamp, shown };
                }
                Err(why) => tracing::error!(%why, "the worker's certificate stays as it was"),
            }
        }
        last.shown.clone()
    }
}

impl ResolvesServerCert for ShownKey {
    fn resolve(&self, _client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }

    fn only_raw_public_keys(&self) -> bool {
        true
    }
}
