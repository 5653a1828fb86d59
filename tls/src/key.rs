//! Ed25519 keys and how they are written.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;

use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rustls::crypto::aws_lc_rs::sign::any_eddsa_type;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;

/// What a SubjectPublicKeyInfo of an Ed25519 key begins with (RFC 8410, section 4); the 32 bytes of the key follow.
const SPKI_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// What a line with a public key begins with.
const NAME: &str = "hipr-ed25519";
const FINGERPRINT_NAME: &str = "SHA256:";
const PEM_BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const PEM_END: &str = "-----END PRIVATE KEY-----";

/// Reason why a text is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// The text is not `hipr-ed25519` and 43 digits.
    Public,
    /// The text is not `SHA256:` and 43 digits.
    Fingerprint,
    /// The text is no Ed25519 key in a PEM file.
    Secret,
    /// The system has no random numbers.
    NoRandom,
}

/// Returns bytes that nobody can guess.
///
/// # Errors
/// The system has no random numbers.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], KeyError> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| KeyError::NoRandom)?;
    Ok(bytes)
}

impl From<KeyError> for io::Error {
    fn from(why: KeyError) -> Self {
        Self::other(why)
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => {
                "a key is written 'hipr-ed25519' and 43 letters, digits, - or _, as `hipr key` prints it"
            }
            Self::Fingerprint => "a fingerprint is written 'SHA256:' and 43 letters, digits, - or _",
            Self::Secret => "it is not an Ed25519 private key (PKCS#8 in PEM), as `hipr key` makes it",
            Self::NoRandom => "the system gives no random numbers",
        })
    }
}

impl std::error::Error for KeyError {}

/// A public key. It is written `hipr-ed25519` and the 32 bytes in the base64 of URLs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// Returns the key in a SubjectPublicKeyInfo; `None` if that is not one of an Ed25519 key.
    pub fn from_spki(spki: &[u8]) -> Option<Self> {
        spki.strip_prefix(&SPKI_PREFIX)?.try_into().ok().map(Self)
    }

    /// Returns the SubjectPublicKeyInfo, DER-encoded.
    pub fn spki(&self) -> Vec<u8> {
        [&SPKI_PREFIX[..], &self.0].concat()
    }

    /// Returns the key's fingerprint.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint(sha256(&self.spki()))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns whether who has the private key has signed a message.
    pub(crate) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, self.0).verify(message, signature).is_ok()
    }

    /// Parses the two words of a line; see the type.
    pub(crate) fn from_words(name: &str, digits: &str) -> Result<Self, KeyError> {
        let key = (name == NAME).then(|| decode_32(digits)).flatten();
        key.map(Self).ok_or(KeyError::Public)
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let (name, digits) = text.trim().split_once(' ').ok_or(KeyError::Public)?;
        Self::from_words(name, digits.trim())
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NAME} {}", encode_32(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The SHA-256 of a public key's SubjectPublicKeyInfo. It is written `SHA256:` and the 32 bytes in the base64 of URLs, everywhere.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Returns the fingerprint with these bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl FromStr for Fingerprint {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let bytes = text.strip_prefix(FINGERPRINT_NAME).and_then(decode_32);
        bytes.map(Self).ok_or(KeyError::Fingerprint)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{FINGERPRINT_NAME}{}", encode_32(&self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Returns 32 bytes in the base64 of URLs, without padding: 43 digits.
pub(crate) fn encode_32(bytes: &[u8; 32]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Returns the 32 bytes that [`encode_32`] writes as `text`; `None` for every other text.
pub(crate) fn decode_32(text: &str) -> Option<[u8; 32]> {
    // A longer text is not decoded at all.
    (text.len() == 43).then(|| URL_SAFE_NO_PAD.decode(text).ok()).flatten()?.try_into().ok()
}

/// Returns the SHA-256 of `bytes`.
pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes).as_ref());
    hash
}

/// A private key with its public one. Nothing prints it.
pub struct SecretKey {
    pkcs8: Vec<u8>,
    public: PublicKey,
}

impl SecretKey {
    /// Makes a key.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn generate() -> Result<Self, KeyError> {
        let document =
            Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| KeyError::NoRandom)?;
        Self::from_pkcs8(document.as_ref().to_vec())
    }

    fn from_pkcs8(pkcs8: Vec<u8>) -> Result<Self, KeyError> {
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&pkcs8).map_err(|_| KeyError::Secret)?;
        let public = pair.public_key().as_ref().try_into().map_err(|_| KeyError::Secret)?;
        Ok(Self { pkcs8, public: PublicKey(public) })
    }

    /// Returns the public key.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    /// Returns the text of a file with the key: PKCS#8 in PEM.
    pub fn to_pem(&self) -> String {
        format!("{PEM_BEGIN}\n{}\n{PEM_END}\n", STANDARD.encode(&self.pkcs8))
    }

    /// Reads a file's text; lines before and after the key do not matter.
    ///
    /// # Errors
    /// The text has no Ed25519 key.
    pub fn from_pem(text: &str) -> Result<Self, KeyError> {
        let mut lines = text.lines().map(str::trim).skip_while(|line| *line != PEM_BEGIN).skip(1);
        let digits: String = lines.by_ref().take_while(|line| *line != PEM_END).collect();
        STANDARD.decode(digits).map_err(|_| KeyError::Secret).and_then(Self::from_pkcs8)
    }

    /// Signs a message: 64 bytes.
    pub(crate) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&self.pkcs8).map_err(|_| KeyError::Secret)?;
        Ok(pair.sign(message).as_ref().to_vec())
    }

    /// Returns the key as rustls signs with it, sent as a raw public key.
    pub(crate) fn certified(&self) -> Result<Arc<CertifiedKey>, KeyError> {
        let der = PrivatePkcs8KeyDer::from(self.pkcs8.as_slice());
        let signer = any_eddsa_type(&der).map_err(|_| KeyError::Secret)?;
        let sent = CertificateDer::from(self.public.spki());
        Ok(Arc::new(CertifiedKey::new(vec![sent], signer)))
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the private key of {}", self.public)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_survives_its_file_and_its_line() {
        let key = SecretKey::generate().unwrap();
        let again = SecretKey::from_pem(&format!("a comment\n{}and more\n", key.to_pem())).unwrap();
        assert_eq!(again.public(), key.public());
        assert!(again.certified().is_ok());
        let line = key.public().to_string();
        assert_eq!(line.parse(), Ok(key.public()));
        assert_eq!(PublicKey::from_spki(&key.public().spki()), Some(key.public()));
        let fingerprint = key.public().fingerprint();
        assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
        assert!(!format!("{key:?}").contains("BEGIN"));
        assert_ne!(SecretKey::generate().unwrap().public(), key.public());
    }

    #[test]
    fn the_fingerprint_is_that_of_the_subject_public_key_info() {
        // The key of RFC 8410, section 10.1.
        let spki = [
            &SPKI_PREFIX[..],
            &[
                0x19, 0xbf, 0x44, 0x09, 0x69, 0x84, 0xcd, 0xfe, 0x85, 0x41, 0xba, 0xc1, 0x67, 0xdc, 0x3b,
                0x96, 0xc8, 0x50, 0x86, 0xaa, 0x30, 0xb6, 0xb6, 0xcb, 0x0c, 0x5c, 0x38, 0xad, 0x70, 0x31,
                0x66, 0xe1,
            ],
        ]
        .concat();
        let key = PublicKey::from_spki(&spki).unwrap();
        let secret = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";
        assert_eq!(SecretKey::from_pem(secret).unwrap().public(), key);
        assert_eq!(encode_32(&sha256(&spki)), key.fingerprint().to_string()[7..]);
    }

    #[test]
    fn one_value_has_one_text() {
        let bytes: [u8; 32] = std::array::from_fn(|at| 0xff - at as u8);
        let text = encode_32(&bytes);
        assert_eq!(decode_32(&text), Some(bytes));
        // The last digit stands for four bits of the value and two that are zero.
        let last = text.chars().next_back().unwrap();
        for other in ('0'..='9')
            .chain('a'..='z')
            .chain('A'..='Z')
            .chain(['-', '_', '+', '/', '='])
            .filter(|&c| c != last)
        {
            let changed = format!("{}{other}", &text[..42]);
            assert_ne!(decode_32(&changed), Some(bytes), "{changed}");
        }
        for wrong in [&text[..42], &format!("{text}="), &text.replace('_', "/"), &format!(" {}", &text[..42])]
        {
            assert_eq!(decode_32(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let key = SecretKey::generate().unwrap();
        let line = key.public().to_string();
        for wrong in [
            "",
            "hipr-ed25519",
            &line[1..],
            &line[..line.len() - 1],
            &format!("{line}A"),
            &line.replace(' ', ""),
        ] {
            assert_eq!(wrong.parse::<PublicKey>(), Err(KeyError::Public), "{wrong}");
        }
        let fingerprint = key.public().fingerprint().to_string();
        for wrong in ["", "SHA256:", &fingerprint[7..], &fingerprint[..49], &fingerprint.to_lowercase()] {
            assert_eq!(wrong.parse::<Fingerprint>(), Err(KeyError::Fingerprint), "{wrong}");
        }
        let pem = key.to_pem();
        for wrong in ["", &line, &pem[..60], &pem.replace("PRIVATE", "PUBLIC"), &pem.replacen('M', "N", 1)] {
            assert!(SecretKey::from_pem(wrong).is_err(), "{wrong}");
        }
        let mut spki = key.public().spki();
        assert_eq!(PublicKey::from_spki(&spki[..43]), None);
        spki[8] = 0x71;
        assert_eq!(PublicKey::from_spki(&spki), None, "Ed448");
    }
}
