//! What rustls asks when a peer shows its key: only Ed25519, only TLS 1.3, only raw public keys. Whose key it is, is asked afterwards.

use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerIncompatible, SignatureScheme,
};

use crate::{Certificate, PublicKey};

/// The name of the protocol inside, so that nothing else is spoken with these keys.
pub(crate) const ALPN: &[u8] = b"hipr";

/// Returns the cryptography that is used: AWS-LC, with the fastest cipher first, and one key exchange.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    use aws_lc_rs::cipher_suite::{
        TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256,
    };
    Arc::new(CryptoProvider {
        cipher_suites: vec![
            TLS13_AES_128_GCM_SHA256,
            TLS13_AES_256_GCM_SHA384,
            TLS13_CHACHA20_POLY1305_SHA256,
        ],
        kx_groups: vec![aws_lc_rs::kx_group::X25519],
        ..aws_lc_rs::default_provider()
    })
}

/// What a worker shows with its key, once that has come: its certificate, if it has one.
pub(crate) type Shown = Arc<OnceLock<Vec<u8>>>;

/// Accepts every key whose owner proves to have it.
#[derive(Debug)]
pub(crate) struct Proof {
    algorithms: WebPkiSupportedAlgorithms,
    shown: Option<Shown>,
}

impl Proof {
    pub(crate) fn new(algorithms: WebPkiSupportedAlgorithms) -> Self {
        Self { algorithms, shown: None }
    }

    /// Accepts as [`new`](Self::new) does, for one connection, and notes there what comes with the key.
    pub(crate) fn noting(algorithms: WebPkiSupportedAlgorithms, shown: Shown) -> Self {
        Self { algorithms, shown: Some(shown) }
    }

    fn check_key(sent: &CertificateDer<'_>) -> Result<(), Error> {
        let is_key = PublicKey::from_spki(sent).is_some();
        if is_key { Ok(()) } else { Err(CertificateError::BadEncoding.into()) }
    }

    fn check_signature(
        &self,
        message: &[u8],
        sent: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature_with_raw_key(
            message,
            &SubjectPublicKeyInfoDer::from(sent.as_ref()),
            signed,
            &self.algorithms,
        )
    }
}

impl ServerCertVerifier for Proof {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        // A statement about the key that is signed and ends, in the place that TLS has for one; hipr's own, not an OCSP response.
        stapled: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(shown) = &self.shown
            && stapled.len() <= Certificate::MAX_BYTES
        {
            let _ = shown.set(stapled.to_vec());
        }
        Self::check_key(end_entity).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Proof {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Self::check_key(end_entity).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
