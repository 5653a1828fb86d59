//! What comes from a file of keys, from an address, or from the other end before HIPR.

use hipr_tls::preamble::{Answer, FIELDS_MAX_BYTES, HEAD_BYTES, Hello, fields_len};
use hipr_tls::{Authorized, Certificate, Fingerprint, Known, PublicKey, SecretKey, Statement, Token};

/// The first byte of what a certificate says, or of a whole one.
const CERTIFICATE: u8 = b'c';

/// Reads keys, their files, certificates and preambles from any bytes; what is read is written in one way only. The first byte says what it is.
pub fn identity(data: &[u8]) {
    let Some((&what, data)) = data.split_first() else { return };
    if what == CERTIFICATE {
        return certificate(data);
    }
    if what % 4 < 2 {
        return preamble(what % 4 == 0, data);
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    if what % 4 == 2 {
        if let Ok(key) = text.parse::<PublicKey>() {
            assert_eq!(key.to_string().parse(), Ok(key));
            assert_eq!(PublicKey::from_spki(&key.spki()), Some(key));
        }
        if let Ok(fingerprint) = text.parse::<Fingerprint>() {
            assert_eq!(fingerprint.to_string(), text);
        }
        if let Ok(certificate) = text.parse::<Certificate>() {
            assert_eq!(certificate.to_string().parse(), Ok(certificate));
        }
        if let Some(token) = Token::parse(text) {
            assert_eq!(token.text(), text);
        }
        if let Ok(key) = SecretKey::from_pem(text) {
            let again = SecretKey::from_pem(&key.to_pem()).expect("what was written");
            assert_eq!(again.public(), key.public());
        }
        return;
    }
    let lines = text.lines().count();
    match Authorized::parse(text) {
        Ok(keys) => assert!(keys.len() + keys.authorities().len() <= lines),
        Err((line, why)) => assert!((1..=lines).contains(&line) && !why.is_empty()),
    }
    if let Err((line, why)) = Known::parse(text, "gpu:18515") {
        assert!((1..=lines).contains(&line) && !why.is_empty());
    }
}

fn preamble(is_clients: bool, data: &[u8]) {
    let Some((head, fields)) = data.split_first_chunk::<HEAD_BYTES>() else { return };
    let Ok(len) = fields_len(*head) else { return };
    assert!(len <= FIELDS_MAX_BYTES);
    let Some(fields) = fields.get(..len) else { return };
    // What is written is read again as what was read; a field that is passed over is not written.
    if is_clients {
        if let Ok(hello) = Hello::from_fields(fields) {
            let again = hello.to_bytes();
            assert_eq!(Hello::from_fields(again.get(HEAD_BYTES..).unwrap_or_default()), Ok(hello));
        }
    } else if let Ok(answer) = Answer::from_fields(fields) {
        let again = answer.to_bytes();
        assert_eq!(Answer::from_fields(again.get(HEAD_BYTES..).unwrap_or_default()), Ok(answer));
    }
}

/// Nobody signs what a fuzzer makes, so that what is signed is read without a signature as well.
fn certificate(data: &[u8]) {
    if let Ok(statement) = Statement::from_bytes(data) {
        assert!(statement.not_before_s < statement.not_after_s);
        // A field that is passed over is not written.
        let again = statement.to_bytes();
        assert!(again.len() <= data.len());
        assert_eq!(Statement::from_bytes(&again), Ok(statement));
    }
    if let Ok(certificate) = Certificate::from_bytes(data) {
        assert_eq!(certificate.bytes(), data);
        let statement = data.split_last_chunk::<64>().map(|(statement, _)| Statement::from_bytes(statement));
        assert_eq!(statement, Some(Ok((*certificate).clone())));
    }
}
