//! The key of the sending direction, lent to a kernel that encrypts in rustls's place.
//!
//! rustls says the secret of the direction once, in the handshake, to who logs keys; the key follows from it as RFC 8446, section 7.3, says.
//! rustls itself goes on with the other direction.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use aws_lc_rs::hkdf::{HKDF_SHA256, HKDF_SHA384, KeyType, Prk};
use rustls::{CipherSuite, KeyLog};

/// The label with which rustls logs the secret of what a worker sends.
const LABEL: &str = "SERVER_TRAFFIC_SECRET_0";

/// What is needed to encrypt the records that a worker sends from a certain one on.
#[derive(Clone, PartialEq, Eq)]
pub struct LentKey {
    /// The cipher with its key.
    pub cipher: LentCipher,
    /// What the nonce of each record is made from.
    pub iv: [u8; 12],
    /// Number of the next record.
    pub record: u64,
}

/// A cipher of TLS 1.3 with a key for it.
#[derive(Clone, PartialEq, Eq)]
pub enum LentCipher {
    /// AES-128-GCM.
    Aes128Gcm([u8; 16]),
    /// AES-256-GCM.
    Aes256Gcm([u8; 32]),
    /// ChaCha20-Poly1305.
    ChaCha20Poly1305([u8; 32]),
}

impl LentCipher {
    /// Returns how many bytes one key may encrypt, each record counted as its length and 48 bytes more; `None` if there is no such limit.
    /// For AES-GCM it is what RFC 8446, section 5.5, allows in records of 16 KiB, in whole powers of two.
    pub fn key_max_bytes(&self) -> Option<u64> {
        match self {
            Self::Aes128Gcm(_) | Self::Aes256Gcm(_) => Some(1 << 38),
            Self::ChaCha20Poly1305(_) => None,
        }
    }
}

impl fmt::Debug for LentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LentKey")
            .field("cipher", &self.cipher)
            .field("record", &self.record)
            .finish_non_exhaustive()
    }
}

/// Names the cipher; the key is printed nowhere.
impl fmt::Debug for LentCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aes128Gcm(_) => "AES-128-GCM",
            Self::Aes256Gcm(_) => "AES-256-GCM",
            Self::ChaCha20Poly1305(_) => "ChaCha20-Poly1305",
        })
    }
}

/// Keeps the secret of what a worker sends on one connection.
#[derive(Default)]
pub(crate) struct SendSecret(Mutex<Vec<u8>>);

impl fmt::Debug for SendSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SendSecret")
    }
}

impl KeyLog for SendSecret {
    fn log(&self, label: &str, _client_random: &[u8], secret: &[u8]) {
        if label == LABEL {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = secret.to_vec();
        }
    }

    fn will_log(&self, label: &str) -> bool {
        label == LABEL
    }
}

impl Drop for SendSecret {
    fn drop(&mut self) {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner).fill(0);
    }
}

impl SendSecret {
    /// Returns the key of the records from `record` on; `None` if there is none yet, or the cipher is not one of ours.
    pub(crate) fn key(&self, suite: CipherSuite, record: u64) -> Option<LentKey> {
        let secret = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = match suite {
            CipherSuite::TLS13_AES_256_GCM_SHA384 => HKDF_SHA384,
            _ => HKDF_SHA256,
        };
        if secret.len() != hash.hmac_algorithm().digest_algorithm().output_len() {
            return None;
        }
        let prk = Prk::new_less_safe(hash, &secret);
        let cipher = match suite {
            CipherSuite::TLS13_AES_128_GCM_SHA256 => LentCipher::Aes128Gcm(expand(&prk, b"tls13 key")?),
            CipherSuite::TLS13_AES_256_GCM_SHA384 => LentCipher::Aes256Gcm(expand(&prk, b"tls13 key")?),
            CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => {
                LentCipher::ChaCha20Poly1305(expand(&prk, b"tls13 key")?)
            }
            _ => return None,
        };
        Some(LentKey { cipher, iv: expand(&prk, b"tls13 iv")?, record })
    }
}

/// The length of an output.
struct Len(usize);

impl KeyType for Len {
    fn len(&self) -> usize {
        self.0
    }
}

/// Does what RFC 8446, section 7.1, calls HKDF-Expand-Label, without a context.
fn expand<const N: usize>(prk: &Prk, label: &[u8]) -> Option<[u8; N]> {
    let (len, label_len) = (u16::try_from(N).ok()?.to_be_bytes(), [u8::try_from(label.len()).ok()?]);
    let mut out = [0; N];
    prk.expand(&[&len, &label_len, label, &[0]], Len(N)).ok()?.fill(&mut out).ok()?;
    Some(out)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use rustls::{ClientConnection, ConnectionTrafficSecrets, ServerConnection};

    use super::*;
    use crate::{ClientIdentity, SecretKey, WorkerIdentity};

    /// What is made from the logged secret is what rustls itself has, at every record and with every cipher.
    #[test]
    fn the_key_is_rustls_s_own() {
        let folder = tempfile::tempdir().unwrap();
        let (user, worker) = (SecretKey::generate().unwrap(), SecretKey::generate().unwrap());
        let worker = WorkerIdentity::new(&worker, &folder.path().join("authorized")).unwrap();
        for suite in [
            CipherSuite::TLS13_AES_128_GCM_SHA256,
            CipherSuite::TLS13_AES_256_GCM_SHA384,
            CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
        ] {
            for records in [0, 1, 7] {
                let secret = Arc::new(SendSecret::default());
                let mut config = (*worker.rustls()).clone();
                config.key_log = secret.clone();
                config.enable_secret_extraction = true;
                let mut server = ServerConnection::new(Arc::new(config)).unwrap();
                let user = ClientIdentity::with_cipher(&user, suite).unwrap();
                let mut client = ClientConnection::new(user.rustls(), "hipr".try_into().unwrap()).unwrap();
                while client.is_handshaking() || server.is_handshaking() {
                    let (mut up, mut down) = (Vec::new(), Vec::new());
                    while client.wants_write() {
                        client.write_tls(&mut up).unwrap();
                    }
                    server.read_tls(&mut up.as_slice()).unwrap();
                    server.process_new_packets().unwrap();
                    while server.wants_write() {
                        server.write_tls(&mut down).unwrap();
                    }
                    client.read_tls(&mut down.as_slice()).unwrap();
                    client.process_new_packets().unwrap();
                }
                for _ in 0..records {
                    server.writer().write_all(b"a record").unwrap();
                }
                while server.wants_write() {
                    server.write_tls(&mut Vec::new()).unwrap();
                }
                let ours = secret.key(suite, records).unwrap();
                let theirs = server.dangerous_extract_secrets().unwrap().tx;
                assert_eq!(theirs.0, records);
                let (key, iv) = match theirs.1 {
                    ConnectionTrafficSecrets::Aes128Gcm { key, iv } => {
                        (LentCipher::Aes128Gcm(key.as_ref().try_into().unwrap()), iv)
                    }
                    ConnectionTrafficSecrets::Aes256Gcm { key, iv } => {
                        (LentCipher::Aes256Gcm(key.as_ref().try_into().unwrap()), iv)
                    }
                    ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
                        (LentCipher::ChaCha20Poly1305(key.as_ref().try_into().unwrap()), iv)
                    }
                    _ => panic!("another cipher"),
                };
                assert!(ours.cipher == key && ours.iv == iv.as_ref(), "{suite:?}");
                assert!(!format!("{ours:?} {secret:?}").contains("key:"), "a key is printed nowhere");
            }
        }
    }
}
