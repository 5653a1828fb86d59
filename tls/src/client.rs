//! The client's end: who the user is, which worker is expected, and the channel of one connection.

use std::fmt;
use std::io::IoSlice;
use std::sync::Arc;

use hipr_resume::{Claim, Terms};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::ServerName;
use rustls::{CipherSuite, ClientConfig, ClientConnection, version};

use crate::fault::Changed;
use crate::preamble::{Answer, Collected, Hello};
use crate::verify::{ALPN, Proof, Shown, provider};
use crate::{Certificate, Channel, Fault, Fingerprint, PublicKey, Revoked, SecretKey, Token};

/// The worker that a client expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The one with this key.
    Known(Fingerprint),
    /// One that shows a certificate for this host from one of these authorities, which holds at this time, in seconds since 1970.
    Certified {
        /// The host, without its port.
        host: String,
        /// The authorities.
        authorities: Vec<PublicKey>,
        /// The time.
        now_s: u64,
    },
    /// Any, to be trusted at first use.
    Any,
}

/// A user's key with the TLS settings made from it, for any number of connections.
#[derive(Clone)]
pub struct ClientIdentity {
    config: Arc<ClientConfig>,
    certificate: Option<Certificate>,
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a client's identity")
    }
}

impl ClientIdentity {
    /// Creates the identity of who has this key.
    ///
    /// # Errors
    /// The key cannot be used.
    pub fn new(key: &SecretKey) -> Result<Self, Fault> {
        Self::with(key, provider())
    }

    /// Creates the identity of who has this key, and speaks with one cipher only.
    ///
    /// # Errors
    /// The key cannot be used; the cipher is none that workers speak with.
    pub fn with_cipher(key: &SecretKey, cipher: CipherSuite) -> Result<Self, Fault> {
        let mut provider = (*provider()).clone();
        provider.cipher_suites.retain(|suite| suite.suite() == cipher);
        Self::with(key, Arc::new(provider))
    }

    fn with(key: &SecretKey, provider: Arc<CryptoProvider>) -> Result<Self, Fault> {
        let certified = key.certified().map_err(|why| Fault::Setup(why.to_string()))?;
        let proof = Proof::new(provider.signature_verification_algorithms);
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(proof))
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(certified)));
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.resumption = Resumption::disabled();
        config.enable_sni = false;
        Ok(Self { config: Arc::new(config), certificate: None })
    }

    /// Sets the certificate of the key, which is shown to every worker that is the expected one.
    #[must_use]
    pub fn with_certificate(mut self, certificate: Certificate) -> Self {
        self.certificate = Some(certificate);
        self
    }

    /// Returns what rustls needs for a connection, for a stream without preamble, to compare with.
    pub fn rustls(&self) -> Arc<ClientConfig> {
        self.config.clone()
    }
}

/// One connection to a worker: the handshake, the preamble, and then bytes of HIPR.
#[derive(Debug)]
pub struct ClientChannel {
    channel: Channel,
    expected: Expected,
    /// Keys and certificates of workers that are of no use any more.
    revoked: Revoked,
    /// What the worker has shown with its key.
    shown: Shown,
    token: Option<Token>,
    certificate: Option<Certificate>,
    /// The session that the connection is for, if it is to outlive it.
    claim: Option<Claim>,
    /// What the worker has answered to that.
    terms: Option<Terms>,
    /// The token of a capability to read memory of another session.
    capability: Option<[u8; 32]>,
    /// Whether the worker's key was found right, and this side's preamble is in the output.
    is_ready: bool,
    collected: Collected,
    /// Whether the worker has let this side in.
    is_in: bool,
}

impl ClientChannel {
    /// Creates the channel of a connection to a worker; the handshake's first bytes are in its output. `token` is an invitation's.
    ///
    /// # Errors
    /// The identity cannot be used.
    pub fn new(identity: &ClientIdentity, expected: Expected, token: Option<Token>) -> Result<Self, Fault> {
        // Workers have no names; the key says who it is.
        let name = ServerName::try_from("hipr").map_err(|why| Fault::Setup(why.to_string()))?;
        let shown = Shown::default();
        let mut config = ClientConfig::clone(&identity.config);
        let algorithms = config.crypto_provider().signature_verification_algorithms;
        config.dangerous().set_certificate_verifier(Arc::new(Proof::noting(algorithms, shown.clone())));
        let connection = ClientConnection::new(Arc::new(config), name)?;
        let channel = Channel::new(connection.into());
        let certificate = identity.certificate.clone();
        let (revoked, claim, terms, capability, collected, is_ready, is_in) = Default::default();
        Ok(Self {
            channel,
            expected,
            revoked,
            shown,
            token,
            certificate,
            claim,
            terms,
            capability,
            is_ready,
            collected,
            is_in,
        })
    }

    /// Refuses workers whose keys or certificates are among these. Has to be called before anything is received.
    #[must_use]
    pub fn refusing(mut self, revoked: Revoked) -> Self {
        self.revoked = revoked;
        self
    }

    /// Claims a session, which is to outlive the connection. Has to be called before anything is received.
    #[must_use]
    pub fn claiming(mut self, claim: Claim) -> Self {
        self.claim = Some(claim);
        self
    }

    /// Asks to be let in by a capability to read memory of a session, which needs no authorized key. Has to be called before anything is received.
    #[must_use]
    pub fn with_capability(mut self, token: [u8; 32]) -> Self {
        self.capability = Some(token);
        self
    }

    /// Returns the terms of the session that was claimed, once the worker has let this side in.
    pub fn terms(&self) -> Option<Terms> {
        self.terms
    }

    /// Does what [`Channel::receive`] does for bytes of HIPR; handshake and preamble give none. There may be output afterwards.
    ///
    /// # Errors
    /// As there; the worker has another key than expected, or does not let this side in.
    pub fn receive(&mut self, input: &mut &[u8], into: &mut [u8]) -> Result<usize, Fault> {
        while !self.is_in {
            let wanted = self.collected.wanted().map_err(Fault::Preamble)?;
            if wanted > 0 {
                let mut piece = [0; 64];
                let piece = piece.get_mut(..wanted.min(64)).unwrap_or_default();
                let len = self.channel.receive(input, piece)?;
                self.begin()?;
                self.collected.push(piece.get(..len).unwrap_or_default());
                if len < piece.len() {
                    return Ok(0);
                }
                continue;
            }
            let answer = Answer::from_fields(self.collected.fields()).map_err(Fault::Preamble)?;
            match answer.refusal {
                Some(why) => return Err(Fault::Refused(format!("the worker says: {why}"))),
                None if answer.terms.is_some() != self.claim.is_some() => {
                    return Err(Fault::Preamble("it does not answer the claim"));
                }
                None => (self.is_in, self.terms) = (true, answer.terms),
            }
            self.channel.open();
        }
        self.channel.receive(input, into)
    }

    /// Checks the worker's key and says this side's preamble, when the handshake is over.
    fn begin(&mut self) -> Result<(), Fault> {
        if self.is_ready || self.channel.is_handshaking() {
            return Ok(());
        }
        let key = self.channel.peer_key().ok_or(Fault::Preamble("the worker has shown no key"))?;
        if let Err(why) = self.check_worker(&key) {
            self.channel.close();
            return Err(why);
        }
        self.is_ready = true;
        let certificate = self.certificate.take().map(|certificate| certificate.bytes().to_vec());
        let (token, claim, capability) = (self.token.take(), self.claim, self.capability);
        let hello = Hello { token, claim, route: None, certificate, capability };
        self.channel.send(&[IoSlice::new(&hello.to_bytes())]);
        Ok(())
    }

    /// Checks that the worker, which has proved this key, is the expected one.
    fn check_worker(&self, key: &PublicKey) -> Result<(), Fault> {
        let found = key.fingerprint();
        if self.revoked.has_key(found) {
            return Err(Fault::Revoked(found));
        }
        match &self.expected {
            Expected::Known(expected) if *expected != found => {
                Err(Fault::Changed(Box::new(Changed { expected: *expected, found })))
            }
            Expected::Known(_) | Expected::Any => Ok(()),
            Expected::Certified { host, authorities, now_s } => {
                let shown = self.shown.get().map(Vec::as_slice).unwrap_or_default();
                Certificate::check_worker(shown, key, authorities, &self.revoked, (host, *now_s))
                    .map_err(|why| Fault::Uncertified(Box::new(why)))
            }
        }
    }

    /// Returns whether the worker has proved its key, and it is the expected one: from now on bytes can be sent.
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Returns whether the worker has let this side in.
    pub fn is_in(&self) -> bool {
        self.is_in
    }

    /// Returns the fingerprint of the worker's key, once it is proved.
    pub fn worker(&self) -> Option<Fingerprint> {
        self.channel.peer_key().map(|key| key.fingerprint())
    }

    /// Returns the channel, for everything else.
    pub fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }
}
