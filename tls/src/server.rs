//! The worker's end: who it is, whom it lets in, and the channel of one connection.

use std::fmt;
use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use hipr_resume::{Claim, Terms};
use rustls::server::NoServerSessionStorage;
use rustls::{ServerConfig, ServerConnection, version};

use crate::authorized::NotAuthorized;
use crate::lent::SendSecret;
use crate::preamble::{Answer, Collected, Hello};
use crate::shown::ShownKey;
use crate::tenants::{TenantCounter, Tenants};
use crate::verify::{ALPN, Proof, provider};
use crate::{
    Admission, AuthorizedFile, Certificate, Channel, Fault, FileError, Fingerprint, Grant, Invitations,
    PublicKey, SecretKey,
};

/// A worker's key and whom it lets in.
pub struct WorkerIdentity {
    config: Arc<ServerConfig>,
    key: PublicKey,
    shown: Arc<ShownKey>,
    authorized: AuthorizedFile,
    invitations: Invitations,
    tenants: Tenants,
    on_entry: Option<OnEntry>,
    capabilities: Option<FindCapability>,
}

/// A client that was not let in, for a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnedAway {
    /// A word for the reason, which does not change.
    pub word: &'static str,
    /// The key that the client has proved.
    pub key: Option<Fingerprint>,
    /// The tenant that the key belongs to, if it has one.
    pub tenant: Option<String>,
}

/// What is called when a client was let in.
type OnEntry = Box<dyn Fn(&Grant) + Send + Sync>;

/// What finds whose session has given a capability, by its token.
type FindCapability = Box<dyn Fn(&[u8; 32]) -> Option<Grant> + Send + Sync>;

impl fmt::Debug for WorkerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {}", self.fingerprint(), self.authorized.path().display())
    }
}

impl WorkerIdentity {
    /// Creates the identity of a worker with this key, which lets in whom the file says when they come.
    ///
    /// # Errors
    /// The key cannot be used.
    pub fn new(key: &SecretKey, authorized: &Path) -> Result<Self, Fault> {
        let setup = |why: &dyn fmt::Display| Fault::Setup(why.to_string());
        let certified = key.certified().map_err(|why| setup(&why))?;
        let provider = provider();
        let proof = Proof::new(provider.signature_verification_algorithms);
        let builder = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&version::TLS13])
            .map_err(|why| setup(&why))?;
        let shown = Arc::new(ShownKey::new(key.public(), certified, None));
        let mut config = builder.with_client_cert_verifier(Arc::new(proof)).with_cert_resolver(shown.clone());
        config.alpn_protocols = vec![ALPN.to_vec()];
        // Every connection proves its key anew: one that was struck off does not come back.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        config.max_early_data_size = 0;
        Ok(Self {
            config: Arc::new(config),
            key: key.public(),
            shown,
            authorized: AuthorizedFile::new(authorized),
            invitations: Invitations::beside(authorized),
            tenants: Tenants::default(),
            on_entry: None,
            capabilities: None,
        })
    }

    /// Sets the file of the worker's certificate, which need not exist: it is read again when it has changed. While it cannot be read, the
    /// certificate from before is shown, and the log says why.
    #[must_use]
    pub fn with_certificate(mut self, path: &Path) -> Self {
        self.shown = Arc::new(self.shown.with_file(path));
        // It may be the only time that this process can read it.
        self.shown.current();
        let mut config = ServerConfig::clone(&self.config);
        config.cert_resolver = self.shown.clone();
        self.config = Arc::new(config);
        self
    }

    /// Returns the worker's certificate, if it has one.
    ///
    /// # Errors
    /// Its file cannot be read, or its certificate is for another key, or a user's.
    pub fn certificate(&self) -> Result<Option<Certificate>, FileError> {
        self.shown.certificate()
    }

    /// Sets what is called when a client was let in, before any of its requests.
    #[must_use]
    pub fn on_entry(mut self, told: impl Fn(&Grant) + Send + Sync + 'static) -> Self {
        self.on_entry = Some(Box::new(told));
        self
    }

    /// Lets other workers in by capabilities: `find` returns, for a capability's token, what the client may do whose session has given it. Such
    /// a worker counts as one more session of that client's tenant, and may do nothing but read what the capability is for. Without this,
    /// nobody is let in so.
    #[must_use]
    pub fn capabilities_by(
        mut self,
        find: impl Fn(&[u8; 32]) -> Option<Grant> + Send + Sync + 'static,
    ) -> Self {
        self.capabilities = Some(Box::new(find));
        self
    }

    /// Sets who counts the sessions of tenants for all processes of a worker; without it they are counted in this process.
    #[must_use]
    pub fn count_with(mut self, counter: Arc<dyn TenantCounter>) -> Self {
        self.tenants = Tenants::Elsewhere(counter);
        self
    }

    /// Returns the fingerprint by which clients know the worker.
    pub fn fingerprint(&self) -> Fingerprint {
        self.key.fingerprint()
    }

    /// Returns the file of authorized keys.
    pub fn authorized(&self) -> &AuthorizedFile {
        &self.authorized
    }

    /// Returns what rustls needs for a connection, for a stream without preamble, to compare with.
    pub fn rustls(&self) -> Arc<ServerConfig> {
        self.config.clone()
    }

    /// Decides about a client that has proved its key.
    fn admit(&self, channel: &Channel, hello: &Hello) -> Result<Admission, (TurnedAway, String)> {
        let away = |word, key: Option<PublicKey>, tenant| TurnedAway {
            word,
            key: key.map(|key| key.fingerprint()),
            tenant,
        };
        let key = channel
            .peer_key()
            .ok_or_else(|| (away("no-key", None, None), "you have shown no key".to_owned()))?;
        let known = Some(key);
        // The file's name and state are nothing that a stranger has to know.
        let broken = |why: FileError| {
            tracing::error!(%why, "nobody is let in");
            let words = "this worker cannot read who is authorized; its log says why".to_owned();
            (away("authorized-file", known, None), words)
        };
        if let Some(token) = &hello.token
            && !self.invitations.redeem(token, key, &self.authorized).map_err(broken)?
        {
            let words =
                "this invitation was used or has ended; ask for another, or leave out what begins with #";
            return Err((away("invitation", known, None), words.to_owned()));
        }
        let grant = match &hello.capability {
            Some(token) => self.capabilities.as_ref().and_then(|find| find(token)).ok_or_else(|| {
                let words = "there is no such capability (any more)".to_owned();
                (away("capability", known, None), words)
            })?,
            None => {
                let admitted = self.authorized.admit(&key, hello.certificate.as_deref(), now_ms() / 1000);
                admitted.map_err(broken)?.map_err(|why| {
                    let (word, words) = refusal(&key, why);
                    (away(word, known, None), words)
                })?
            }
        };
        if let Some(serial) = grant.serial {
            let serial = format_args!("{serial:016x}");
            tracing::info!(key = %key.fingerprint(), tenant = grant.tenant, serial, "a certificate authorizes a key");
        }
        if hello.claim.is_some_and(|claim| claim.epoch > 0) {
            return Ok(Admission::again(grant));
        }
        if !self.tenants.may_connect(&grant, now_ms()) {
            let (tenant, rate) = (grant.tenant, grant.connections_per_second.unwrap_or_default());
            tracing::info!(tenant, rate, "a session of a tenant that begins as many as it may is refused");
            let words = format!(
                "{tenant} begins more than {rate} sessions a second at this worker (connections-per-second); try again later"
            );
            return Err((away("tenant-rate", known, Some(tenant)), words));
        }
        let (tenant, max) = (grant.tenant.clone(), grant.sessions_max);
        let admission = self.tenants.admit(grant).map(|admission| match &hello.capability {
            Some(_) => admission.by_capability(),
            None => admission,
        });
        admission.ok_or_else(|| {
            let max = max.unwrap_or_default();
            tracing::info!(tenant, max, "a session of a tenant that has as many as it may have is refused");
            let words = format!(
                "{tenant} has {max} sessions at this worker already, and may not have more (sessions-max)"
            );
            (away("tenant-sessions", known, Some(tenant)), words)
        })
    }
}

/// Returns a word for the reason and what the client is told.
fn refusal(key: &PublicKey, why: NotAuthorized) -> (&'static str, String) {
    let line = |why: &str| format!("{why}; its owner adds this line to the worker's file: {key}");
    match why {
        NotAuthorized::Unknown => ("wrong-key", line("your key is not authorized")),
        NotAuthorized::Revoked => ("revoked", "your key was revoked at this worker".to_owned()),
        NotAuthorized::Certificate(why) => ("certificate", format!("your certificate {why}")),
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// One connection to a worker: the handshake, the preamble, and then bytes of HIPR.
#[derive(Debug)]
pub struct ServerChannel {
    channel: Channel,
    identity: Arc<WorkerIdentity>,
    collected: Collected,
    grant: Option<Arc<Admission>>,
    turned_away: Option<Box<TurnedAway>>,
    /// The session that the client claims, until that is answered.
    claim: Option<Claim>,
}

impl ServerChannel {
    /// Creates the channel of a connection that was just accepted.
    ///
    /// # Errors
    /// The identity cannot be used.
    pub fn new(identity: Arc<WorkerIdentity>) -> Result<Self, Fault> {
        let connection = ServerConnection::new(identity.config.clone())?;
        Ok(Self::over(Channel::new(connection.into()), identity))
    }

    /// Creates the channel of a connection that was just accepted, whose key can be [lent](Channel::key_to_lend).
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn lending(identity: Arc<WorkerIdentity>) -> Result<Self, Fault> {
        let secret = Arc::new(SendSecret::default());
        let mut config = (*identity.config).clone();
        config.key_log = secret.clone();
        let connection = ServerConnection::new(Arc::new(config))?;
        Ok(Self::over(Channel::new(connection.into()).keeping(secret), identity))
    }

    fn over(channel: Channel, identity: Arc<WorkerIdentity>) -> Self {
        let (collected, turned_away, claim) = Default::default();
        Self { channel, identity, collected, grant: None, turned_away, claim }
    }

    /// Does what [`Channel::receive`] does for what follows the preamble; handshake and preamble give nothing. There may be output
    /// afterwards, also after an error. Nothing more is read while a [claim](Self::claim) waits for its [answer](Self::answer).
    ///
    /// # Errors
    /// As there; the client is not let in.
    pub fn receive(&mut self, input: &mut &[u8], into: &mut [u8]) -> Result<usize, Fault> {
        while self.grant.is_none() {
            let wanted = self.collected.wanted().map_err(Fault::Preamble)?;
            if wanted > 0 {
                let mut piece = [0; 64];
                let piece = piece.get_mut(..wanted.min(64)).unwrap_or_default();
                let len = self.channel.receive(input, piece)?;
                self.collected.push(piece.get(..len).unwrap_or_default());
                if len < piece.len() {
                    return Ok(0);
                }
                continue;
            }
            let hello = Hello::from_fields(self.collected.fields()).map_err(Fault::Preamble)?;
            if hello.route.is_some() {
                return Err(Fault::Preamble("a route stands alone, before the encryption"));
            }
            if hello.capability.is_some() && (hello.claim.is_some() || hello.token.is_some()) {
                return Err(Fault::Preamble(
                    "a capability is of no use for a session that goes on, or with an invitation",
                ));
            }
            let admitted = self.identity.admit(&self.channel, &hello);
            match admitted {
                Ok(grant) => {
                    if let Some(told) = &self.identity.on_entry {
                        told(&grant);
                    }
                    self.grant = Some(Arc::new(grant));
                    self.claim = hello.claim;
                    if self.claim.is_none() {
                        self.say(&Answer::default());
                    }
                    self.channel.open();
                }
                Err((away, why)) => {
                    self.turned_away = Some(Box::new(away));
                    self.say(&Answer { refusal: Some(why.clone()), terms: None });
                    self.channel.close();
                    return Err(Fault::Refused(why));
                }
            }
        }
        if self.claim.is_some() {
            return Ok(0);
        }
        self.channel.receive(input, into)
    }

    /// Returns what is known of a client that was not let in; `None` if its key was not looked at.
    pub fn turned_away(&self) -> Option<&TurnedAway> {
        self.turned_away.as_deref()
    }

    fn say(&mut self, answer: &Answer) {
        self.channel.send(&[IoSlice::new(&answer.to_bytes())]);
    }

    /// Returns the session that the client claims, if that was not answered.
    pub fn claim(&self) -> Option<Claim> {
        self.claim
    }

    /// Answers the claim: with the session's terms, or why there is none.
    pub fn answer(&mut self, terms: Result<Terms, String>) {
        if self.claim.take().is_some() {
            let is_refused = terms.is_err();
            self.say(&Answer { terms: terms.as_ref().ok().copied(), refusal: terms.err() });
            if is_refused {
                self.channel.close();
            }
        }
    }

    /// Returns whether [`Channel::key_to_lend`] may return a key some time.
    pub fn may_lend(&self) -> bool {
        self.channel.may_lend()
    }

    /// Returns what is to be said as an alert; see [`Channel::alert`].
    pub fn alert(&self) -> Option<[u8; 2]> {
        self.channel.alert()
    }

    /// Returns the key that the client has proved to have.
    pub fn key(&self) -> Option<PublicKey> {
        self.channel.peer_key()
    }

    /// Returns what the client may do, once it was let in.
    pub fn grant(&self) -> Option<&Arc<Admission>> {
        self.grant.as_ref()
    }

    /// Handles the end of the incoming bytes.
    ///
    /// # Errors
    /// As [`Channel::handle_eof`].
    pub fn handle_eof(&self) -> Result<(), Fault> {
        self.channel.handle_eof()
    }

    /// Returns the channel, for everything else.
    pub fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }
}
