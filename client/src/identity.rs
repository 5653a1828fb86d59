//! Who the user is, and which worker is trusted: the files in the folder of hipr's settings, and what the environment says.

use std::env;
use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hipr_io::{Address, SecuredAddress};
use hipr_resume::Claim;
use hipr_tls::{
    Certificate, Changed, ClientChannel, ClientIdentity, Expected, Fault, Fingerprint, Known, KnownWorkers,
    SecretKey, Token, config_folder, host_of, make_key, read_key,
};

use crate::transport::{Line, Resumed, Route, Secured, Transport, connect_tcp, send_route};
use crate::{ConnectError, WorkerAddress};

/// Name of the file with the user's key.
const KEY_FILE: &str = "key";
/// Name of the file with the known workers' fingerprints.
const KNOWN_FILE: &str = "known_workers";

fn failed(why: impl fmt::Display) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, why.to_string())
}

/// How long a program's calls wait for another connection when theirs was cut, unless the environment says something else.
const RESUME_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns how long calls wait for another connection to this worker when theirs was cut; `None` if they do not: over links that cannot be
/// cut, and, as nobody but the environment can know better, on this machine.
pub(crate) fn resume_timeout(address: &Address) -> Option<Duration> {
    let host_and_port = match address {
        Address::Tcp(host_and_port) => host_and_port,
        Address::Secured(secured) => &secured.host_and_port,
        Address::Unix(_) | Address::Shm(_) => return None,
    };
    if let Ok(text) = env::var("HIPR_RESUME_TIMEOUT_MS") {
        match text.trim().parse() {
            Ok(0) => return None,
            Ok(timeout_ms) => return Some(Duration::from_millis(timeout_ms)),
            Err(why) => tracing::warn!("HIPR_RESUME_TIMEOUT_MS is not a number of milliseconds: {why}"),
        }
    }
    let mut addresses = host_and_port.to_socket_addrs().ok()?;
    (!addresses.all(|address| address.ip().to_canonical().is_loopback())).then_some(RESUME_TIMEOUT)
}

/// Connects to a worker within `timeout`, with the user's key if its address asks for encryption. With `resume` the session goes on when
/// the connection is cut and there is another within that time.
pub(crate) fn connect(
    address: &Address,
    timeout: Duration,
    resume: Option<Duration>,
) -> io::Result<Transport> {
    match (address, resume) {
        (Address::Tcp(host_and_port), Some(resume)) => {
            let host_and_port = host_and_port.clone();
            let connect = move |_: &Claim, route, timeout| {
                let socket = connect_tcp(&host_and_port, timeout)?;
                send_route(&socket, route)?;
                Line::tcp(socket)
            };
            Resumed::begin(connect, timeout, resume).map(Transport::Resumed)
        }
        (Address::Secured(address), Some(resume)) => {
            let address = address.clone();
            let connect = move |claim: &Claim, route, timeout| {
                Line::secured(connect_secured(&address, timeout, Some((claim, route)))?)
            };
            Resumed::begin(connect, timeout, resume).map(Transport::Resumed)
        }
        (Address::Secured(address), None) => {
            connect_secured(address, timeout, None).map(Box::new).map(Transport::Secured)
        }
        _ => Transport::connect(address, timeout),
    }
}

fn connect_secured(
    address: &SecuredAddress,
    timeout: Duration,
    claim: Option<(&Claim, Route)>,
) -> io::Result<Secured> {
    if address.token.is_some() {
        return Err(failed(
            "the address has an invitation, which `hipr run` and `hipr info` turn into keys; a program needs the address without what begins with #",
        ));
    }
    open(address, &users_key(false)?, None, claim, timeout)
}

/// Turns an invitation into keys: makes the user's key if there is none, has the worker authorize it, and notes the worker's.
/// Returns the address for programs, which has no token. An address without an invitation stays as it is.
///
/// # Errors
/// The worker cannot be reached, is not the one that the invitation names, or knows of no such invitation (any more); a file of keys
/// cannot be read or written.
pub fn accept_invitation(address: &WorkerAddress, timeout: Duration) -> Result<WorkerAddress, ConnectError> {
    let Address::Secured(invited) = address.address() else { return Ok(address.clone()) };
    let Some(token) = &invited.token else { return Ok(address.clone()) };
    let accept = || {
        let token = Token::parse(token).ok_or_else(|| failed("what follows # is no invitation"))?;
        let secured = open(invited, &users_key(true)?, Some(token), None, timeout)?;
        secured.enter()?;
        let worker = secured.worker();
        secured.say_goodbye();
        if let Some(worker) = worker {
            known_workers()?.add(&invited.host_and_port, worker).map_err(failed)?;
        }
        Ok(Address::Secured(SecuredAddress {
            fingerprint: worker.map(|worker| worker.to_string()),
            host_and_port: invited.host_and_port.clone(),
            token: None,
        }))
    };
    let accepted: io::Result<Address> = accept();
    accepted
        .map(WorkerAddress::from)
        .map_err(|why| ConnectError { address: address.clone(), reason: why.to_string() })
}

fn key_file() -> io::Result<PathBuf> {
    Ok(config_folder().map_err(failed)?.join(KEY_FILE))
}

fn users_key(may_make: bool) -> io::Result<SecretKey> {
    let path = key_file()?;
    if path.try_exists()? {
        read_key(&path).map_err(failed)
    } else if may_make {
        make_key(&path, false).map_err(failed)
    } else {
        Err(failed(format!("you have no key at {}; `hipr key` makes one", path.display())))
    }
}

/// Returns the certificate beside the user's key, if there is one for it.
fn users_certificate(key: &SecretKey) -> io::Result<Option<Certificate>> {
    let path = Certificate::beside(&key_file()?);
    let Some(certificate) = Certificate::read(&path).map_err(failed)? else { return Ok(None) };
    // A worker may know the key without it.
    if certificate.key != key.public() {
        tracing::warn!(file = %path.display(), "the certificate is for another key and is not shown; remove it, or ask for one for your key");
        return Ok(None);
    }
    Ok(Some(certificate))
}

/// Returns how the worker is recognized: by a fingerprint from the address or the file, else by a certificate where there are authorities for
/// its host, else not at all.
fn expected(worker: &str, pinned: Option<Fingerprint>, known: &Known) -> Expected {
    if let Some(fingerprint) = pinned.or(known.fingerprint) {
        return Expected::Known(fingerprint);
    }
    if known.authorities.is_empty() {
        return Expected::Any;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    Expected::Certified {
        host: host_of(worker).to_owned(),
        authorities: known.authorities.clone(),
        now_s: now.map_or(0, |since| since.as_secs()),
    }
}

fn known_workers() -> io::Result<KnownWorkers> {
    Ok(KnownWorkers::new(&config_folder().map_err(failed)?.join(KNOWN_FILE)))
}

fn open(
    address: &SecuredAddress,
    key: &SecretKey,
    token: Option<Token>,
    claim: Option<(&Claim, Route)>,
    timeout: Duration,
) -> io::Result<Secured> {
    let end = Instant::now() + timeout;
    let worker = &address.host_and_port;
    let file = known_workers()?;
    let known = file.find(worker).map_err(failed)?;
    let pinned = address.fingerprint.as_deref().map(str::parse::<Fingerprint>).transpose().map_err(failed)?;
    let is_noted = pinned.is_none() && known.fingerprint.is_some();
    let expected = expected(worker, pinned, &known);
    let is_new = expected == Expected::Any;
    if is_new && env::var("HIPR_TRUST_NEW").is_ok_and(|value| value.trim() == "off") {
        return Err(failed(format!(
            "its key is not known, and HIPR_TRUST_NEW=off: write hipr://FINGERPRINT@{worker}, or add a line to {}",
            file.path().display()
        )));
    }
    let mut identity = ClientIdentity::new(key)?;
    if let Some(certificate) = users_certificate(key)? {
        identity = identity.with_certificate(certificate);
    }
    let mut channel = ClientChannel::new(&identity, expected, token)?.refusing(known.revoked);
    let mut route = 0;
    if let Some((claim, its_route)) = claim {
        channel = channel.claiming(*claim);
        route = its_route;
    }
    let socket = connect_tcp(worker, timeout)?;
    let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    socket.set_read_timeout(Some(left))?;
    socket.set_write_timeout(Some(left))?;
    send_route(&socket, route)?;
    let secured = Secured::open(socket, channel).map_err(|why| explained(why, worker, is_noted, &file))?;
    if is_new
        && let Some(fingerprint) = secured.worker()
        && file.add(worker, fingerprint).map_err(failed)?
    {
        // Where it cannot be written, nobody reads it.
        let _ = writeln!(
            io::stderr(),
            "hipr: from now on {worker} is known by its key {fingerprint} (noted in {}); compare it with what the worker has printed",
            file.path().display()
        );
    }
    Ok(secured)
}

/// Says what to do about a worker that is not the expected one.
fn explained(why: io::Error, worker: &str, is_noted: bool, known: &KnownWorkers) -> io::Error {
    let fault = why.get_ref().and_then(|why| why.downcast_ref::<Fault>());
    let Changed { expected, found } = match fault {
        Some(Fault::Changed(changed)) => **changed,
        Some(Fault::Uncertified(_)) => {
            return failed(format!(
                "{why}; nothing was sent. {} names an authority for {worker}: only a worker with its certificate is trusted there, or one whose key has a line of its own",
                known.path().display()
            ));
        }
        Some(Fault::Revoked(_)) => {
            return failed(format!("{why} in {}; nothing was sent", known.path().display()));
        }
        _ => return why,
    };
    let remedy = if is_noted {
        format!(
            "if its owner confirms the new key, remove the line of {worker} from {}",
            known.path().display()
        )
    } else {
        "ask its owner for the fingerprint, and write that into the address".to_owned()
    };
    failed(format!(
        "the worker's key has changed, or somebody is in between: it is {found}, and was expected to be {expected}; nothing was sent. {remedy}"
    ))
}
