//! Command line options for who may use a worker.

use crate::output::say;
use clap::{Args, ValueEnum};
use hipr_io::{Address, Grant, WorkerIdentity};
use hipr_tls::{
    Certificate, CertificateError, Fingerprint, Invitations, SecretKey, Size, TenantCounter, Token,
    config_folder, date_and_time, make_key, read_key,
};
use hipr_worker::Capabilities;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tracing::{info, warn};

/// How long an invitation can be used.
const INVITATION_TIME: Duration = Duration::from_secs(24 * 60 * 60);
/// What a worker prints before its invitation, on the same line.
pub(crate) const INVITATION: &str = "invitation: ";
/// Name of the file with a worker's key, in the folder of hipr's settings.
const KEY_FILE: &str = "worker-key";

/// What is called when a client was let in.
type OnEntry = Box<dyn Fn(&Grant) + Send + Sync>;

/// Who encrypts what is sent to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Ktls {
    /// The kernel where it can, else this process.
    Auto,
    /// This process.
    Off,
}

/// Who may use the worker.
#[derive(Debug, Args)]
#[command(next_help_heading = "Who may use it")]
pub(crate) struct Access {
    /// File of the keys that may use the worker, a line each: a key as `hipr key` prints it, then what it gives: tenant=NAME,
    /// memory-max=SIZE, memory-total=SIZE, sessions-max=N, parked-max=N, weight=N, kernel-timeout=SECONDS, connections-per-second=N,
    /// requests-per-second=N. `authority` before a key lets in whoever has its certificate (`hipr key sign`), with at most what the line
    /// gives; `revoked SHA256:…` or `revoked serial=…` takes a key or a certificate back. The worker then speaks nothing but TLS, and clients write hipr:// before its address. The file is read again when it changes.
    #[arg(long, value_name = "FILE", conflicts_with = "insecure_no_auth")]
    authorized: Option<PathBuf>,
    /// File with the worker's own key; its certificate, if it has one, is in FILE-cert. [default: worker-key in ~/.config/hipr, made if
    /// there is none]
    #[arg(long, value_name = "FILE", requires = "authorized")]
    key: Option<PathBuf>,
    /// Prints an address with an invitation for one client, which `hipr run --worker` turns into keys; HOST or HOST:PORT is where
    /// clients reach the worker, if that is not where it listens.
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1, require_equals = true, requires = "authorized",
          default_missing_value = "")]
    invite: Option<String>,
    /// Who encrypts what is sent to clients: auto (the kernel, where its module tls is loaded and does it) or off (this process).
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Ktls::Auto, requires = "authorized")]
    ktls: Ktls,
    /// Maximum bytes that the kernel encrypts with one key, if that is less than the cipher allows; for tests.
    #[arg(long, hide = true, value_name = "SIZE", requires = "authorized")]
    ktls_key_max: Option<Size>,
    /// Serves everybody who can reach the worker, without keys and encryption, also from other machines.
    #[arg(long)]
    insecure_no_auth: bool,
}

impl Access {
    /// Returns whether the worker asks for keys.
    pub(crate) fn has_identity(&self) -> bool {
        self.authorized.is_some()
    }

    /// Returns whether other machines may use the worker without keys.
    pub(crate) fn insecure_no_auth(&self) -> bool {
        self.insecure_no_auth
    }

    /// Makes what is missing, before anything is served: the worker's key, and, for an invitation, an empty file of authorized keys.
    ///
    /// # Errors
    /// A file cannot be read or made, or is wrong; the worker does not listen on TCP.
    pub(crate) fn prepare(&self, listen: &Address) -> Result<(), String> {
        let Some(authorized) = &self.authorized else { return Ok(()) };
        if !matches!(listen, Address::Tcp(_)) {
            return Err(format!(
                "--authorized is for TCP; who may use {listen} is decided by its file's permissions"
            ));
        }
        let key = self.key_file()?;
        if !exists(&key)? {
            make_key(&key, false).map_err(|why| why.to_string())?;
            info!(file = %key.display(), "the worker's key was made");
        }
        if self.invite.is_some() && !exists(authorized)? {
            let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(authorized);
            made.map_err(|why| format!("{}: {why}", authorized.display()))?;
        }
        let identity = self.identity(None, None, None)?.ok_or("there are no authorized keys")?;
        let (keys, authorities) = identity.authorized().count().map_err(|why| why.to_string())?;
        if let Some(certificate) = identity.certificate().map_err(|why| why.to_string())? {
            let hosts = certificate.worker().map_err(|why| why.to_string())?;
            let ends = date_and_time(certificate.not_after_s);
            if certificate.not_after_s <= now_s() {
                warn!("the worker's certificate {}", CertificateError::Ended(certificate.not_after_s));
            }
            info!(%hosts, ends = format_args!("{ends}Z"), file = %Certificate::beside(&key).display(), "the worker shows its certificate");
        }
        info!(fingerprint = %identity.fingerprint(), keys, authorities, file = %authorized.display(), "only authorized keys may use the worker");
        Ok(())
    }

    /// Returns the worker's identity, if it asks for keys; `on_entry` is called when a client was let in. `counter` counts the
    /// sessions of tenants where each has a process. Other workers are let in by `capabilities`.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare).
    pub(crate) fn identity(
        &self,
        on_entry: Option<OnEntry>,
        counter: Option<Arc<dyn TenantCounter>>,
        capabilities: Option<&Arc<Capabilities>>,
    ) -> Result<Option<Arc<WorkerIdentity>>, String> {
        let Some(authorized) = &self.authorized else { return Ok(None) };
        let file = self.key_file()?;
        let key = read_key(&file).map_err(|why| why.to_string())?;
        let identity = WorkerIdentity::new(&key, authorized).map_err(|why| why.to_string())?;
        let identity = identity.with_certificate(&Certificate::beside(&file));
        let identity = match capabilities.cloned() {
            Some(capabilities) => identity.capabilities_by(move |token| capabilities.grant(token)),
            None => identity,
        };
        let identity = match counter {
            Some(counter) => identity.count_with(counter),
            None => identity,
        };
        Ok(Some(Arc::new(match on_entry {
            Some(told) => identity.on_entry(told),
            None => identity,
        })))
    }

    /// Applies who encrypts to a worker's configuration.
    pub(super) fn apply(&self, config: &mut hipr_io::Config) {
        config.ktls = self.ktls == Ktls::Auto;
        if let Some(Size(bytes)) = self.ktls_key_max {
            config.ktls_key_max_bytes = bytes;
        }
    }

    /// Returns the files that are only read, the worker's certificate among them, and those that change when a client uses an invitation:
    /// none where nobody is invited.
    pub(super) fn files(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let Some(authorized) = self.authorized.clone() else { return Default::default() };
        let mut read: Vec<_> = self.key_file().map(|key| Certificate::beside(&key)).into_iter().collect();
        let invitations = Invitations::beside(&authorized).path().to_owned();
        if invitations.exists() {
            (read, vec![authorized, invitations])
        } else {
            read.push(authorized);
            (read, Vec::new())
        }
    }

    fn key_file(&self) -> Result<PathBuf, String> {
        key_file(self.key.as_deref())
    }

    /// Prints an invitation to the worker that listens at `local_addr`, if one is wanted.
    ///
    /// # Errors
    /// It cannot be noted.
    pub(crate) fn announce(&self, local_addr: &Address) -> Result<(), String> {
        let (Some(name), Some(authorized), Some(local)) = (&self.invite, &self.authorized, local_addr.tcp())
        else {
            return Ok(());
        };
        let place = match Address::new(name) {
            _ if name.is_empty() && local.ip().is_unspecified() => {
                format!("{}:{}", host_name(), local.port())
            }
            _ if name.is_empty() => local.to_string(),
            _ if name.contains(':') => name.clone(),
            _ => format!("{name}:{}", local.port()),
        };
        let key = read_key(&self.key_file()?).map_err(|why| why.to_string())?;
        let token = invite(authorized, None, None)?;
        say!("{INVITATION}{}", invitation_url(&key, &place, &token));
        Ok(())
    }
}

/// Returns the file with a worker's key: the one that was given, or the usual one.
pub(crate) fn key_file(given: Option<&Path>) -> Result<PathBuf, String> {
    match given {
        Some(path) => Ok(path.to_owned()),
        None => Ok(config_folder().map_err(|why| why.to_string())?.join(KEY_FILE)),
    }
}

fn exists(path: &Path) -> Result<bool, String> {
    path.try_exists().map_err(|why| format!("{}: {why}", path.display()))
}

/// Notes an invitation, which can be used once in 24 hours.
pub(crate) fn invite(
    authorized: &Path,
    tenant: Option<String>,
    memory_max: Option<Size>,
) -> Result<Token, String> {
    let noted = Invitations::beside(authorized).invite(tenant, memory_max, INVITATION_TIME);
    noted.map_err(|why| why.to_string())
}

/// Returns the address that an invitation is given as.
pub(crate) fn invitation_url(key: &SecretKey, place: &str, token: &Token) -> String {
    let fingerprint: Fingerprint = key.public().fingerprint();
    format!("hipr://{fingerprint}@{place}/#{}", token.text())
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
