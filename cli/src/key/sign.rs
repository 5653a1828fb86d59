//! `hipr key sign` and `hipr key show`: certificates of an authority, and what keys and certificates say.

use crate::output::say;
use clap::Args;
use hipr_tls::{
    Certificate, Grants, HostPatterns, PublicKey, Says, Statement, date_and_time, random_bytes, read_key,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How far a certificate begins before it is signed, so that a machine whose clock is a little late takes it.
const BEGINS_BEFORE: Duration = Duration::from_secs(5 * 60);

/// Options of `hipr key sign`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("whose").required(true))]
pub(crate) struct Sign {
    /// File with the authority's private key, as `hipr key --worker FILE` or `hipr key` makes one.
    #[arg(long, value_name = "FILE")]
    authority: PathBuf,
    /// Signs a user's certificate: KEY is the line that `hipr key` prints, in quotes, or a file with it.
    #[arg(long, value_name = "KEY", group = "whose")]
    user: Option<String>,
    /// Signs a worker's certificate: KEY is the line that `hipr key show FILE` prints of its key, in quotes, or a file with it.
    #[arg(long, value_name = "KEY", group = "whose", requires = "host")]
    worker: Option<String>,
    /// The names by which clients reach the worker, without ports; * stands for any characters.
    #[arg(long, value_name = "NAME[,NAME]", conflicts_with = "user")]
    host: Option<HostPatterns>,
    /// How long the certificate holds: a number and s, m, h, d or w, for seconds, minutes, hours, days or weeks.
    #[arg(long, value_name = "TIME", default_value = "30d")]
    valid_for: ValidFor,
    /// What the user gets, as in a line of authorized keys: tenant=NAME, memory-max=SIZE, memory-total=SIZE, sessions-max=N, parked-max=N, weight=N,
    /// kernel-timeout=SECONDS, connections-per-second=N, requests-per-second=N.
    #[arg(value_name = "WORD", conflicts_with = "worker")]
    gives: Vec<String>,
}

/// Options of `hipr key show`.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// A key or a certificate as it is written, in quotes, or a file with one. [default: your key and its certificate]
    #[arg(value_name = "WHAT")]
    what: Option<String>,
}

/// A time as people write it: `30d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ValidFor {
    seconds: u64,
}

impl FromStr for ValidFor {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let units = [("s", 1), ("m", 60), ("h", 3600), ("d", 86_400), ("w", 7 * 86_400)];
        let found = units.into_iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
        let (digits, unit) = found.ok_or("expected a number and s, m, h, d or w")?;
        let number = digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse::<u64>().ok());
        let seconds = number.flatten().and_then(|number| number.checked_mul(unit));
        let seconds = seconds.filter(|seconds| (1..=u64::from(u32::MAX)).contains(seconds));
        Ok(Self { seconds: seconds.ok_or("expected a time of at least a second and at most 136 years")? })
    }
}

/// Prints a certificate, and to standard error what it says.
pub(super) fn run(options: Sign) -> Result<ExitCode, String> {
    let authority = read_key(&options.authority).map_err(|why| why.to_string())?;
    let (key, says) = match (&options.user, &options.worker, options.host) {
        (Some(user), _, _) => {
            let key = public_key(user)?;
            let given: Grants = options.gives.join(" ").parse()?;
            (key, Says::User(given))
        }
        (None, Some(worker), Some(hosts)) => (public_key(worker)?, Says::Worker(hosts)),
        _ => return Err("a certificate is --user's, or --worker's with --host".to_owned()),
    };
    let serial = u64::from_le_bytes(random_bytes().map_err(|why| why.to_string())?);
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|why| why.to_string())?.as_secs();
    let statement = Statement {
        serial,
        not_before_s: now_s.saturating_sub(BEGINS_BEFORE.as_secs()),
        not_after_s: now_s.saturating_add(options.valid_for.seconds),
        key,
        authority: authority.public(),
        says,
    };
    let signed = Certificate::sign(&authority, statement).map_err(|why| format!("the certificate {why}"))?;
    eprintln!("{}", described(&signed));
    say!("{signed}");
    Ok(ExitCode::SUCCESS)
}

/// Reads a public key from a line, or from a file with one.
fn public_key(line_or_file: &str) -> Result<PublicKey, String> {
    if let Ok(key) = line_or_file.parse() {
        return Ok(key);
    }
    let text = fs::read_to_string(line_or_file).map_err(|why| {
        format!(
            "'{line_or_file}' is neither a key as `hipr key` prints it, in quotes, nor a file with one: {why}"
        )
    })?;
    text.parse().map_err(|why| format!("{line_or_file}: {why}"))
}

/// Prints what a key or a certificate says.
pub(super) fn run_show(options: &Show, users_key: &Path) -> Result<ExitCode, String> {
    let path = match options.what.as_deref() {
        None => users_key,
        Some(text) => {
            if let Ok(key) = text.parse::<PublicKey>() {
                show_key(key);
                return Ok(ExitCode::SUCCESS);
            }
            if text.starts_with("hipr-certificate ") {
                let certificate: Certificate =
                    text.parse().map_err(|why| format!("the certificate {why}"))?;
                say!("{}", described(&certificate));
                return Ok(ExitCode::SUCCESS);
            }
            Path::new(text)
        }
    };
    let key = match read_key(path) {
        Ok(key) => key,
        Err(why) => match Certificate::read(path) {
            Ok(Some(certificate)) => {
                say!("{}", described(&certificate));
                return Ok(ExitCode::SUCCESS);
            }
            _ => return Err(why.to_string()),
        },
    };
    show_key(key.public());
    if let Some(certificate) = Certificate::read(&Certificate::beside(path)).map_err(|why| why.to_string())? {
        say!("{}", described(&certificate));
    }
    Ok(ExitCode::SUCCESS)
}

fn show_key(key: PublicKey) {
    say!("{key}");
    say!("fingerprint: {}", key.fingerprint());
}

/// Says what a certificate says, in lines.
fn described(certificate: &Certificate) -> String {
    let (whose, what) = match &certificate.says {
        Says::User(given) if *given == Grants::default() => {
            ("user", "gives: no limits of its own; the tenant is the key".to_owned())
        }
        Says::User(given) => ("user", format!("gives:{given}")),
        Says::Worker(hosts) => ("worker", format!("hosts: {hosts}")),
    };
    let [from, until] = [certificate.not_before_s, certificate.not_after_s].map(date_and_time);
    format!(
        "{whose}'s certificate for {}\n{what}\nholds from {from}Z until {until}Z\nsigned by {}\nserial={:016x}",
        certificate.key.fingerprint(),
        certificate.authority.fingerprint(),
        certificate.serial
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        for (text, seconds) in [("1s", 1), ("90m", 5400), ("2h", 7200), ("30d", 2_592_000), ("8w", 4_838_400)]
        {
            assert_eq!(text.parse(), Ok(ValidFor { seconds }));
        }
        for wrong in ["", "d", "30", "0d", "-1d", "1.5h", "30 d", "1y", "99999999w", "99999999999999999999s"]
        {
            assert!(wrong.parse::<ValidFor>().is_err(), "{wrong}");
        }
    }
}
