//! What a key may do: as a line of authorized keys or a certificate says it in words, and what becomes of that.

use std::fmt;
use std::str::FromStr;

use crate::key::sha256;
use crate::{PublicKey, Size};

const TENANT_MAX_BYTES: usize = 64;

/// What a client may do: the tenant it belongs to, and that one's limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The client's key.
    pub key: PublicKey,
    /// The tenant: who is meant, in logs and records.
    pub tenant: String,
    /// The most memory of a session, in bytes, if the line says so.
    pub memory_max_bytes: Option<u64>,
    /// The most memory of all sessions of the tenant together, in bytes, if a line says so.
    pub memory_total_bytes: Option<u64>,
    /// The most sessions that the tenant may have when this key begins one, if the line says so.
    pub sessions_max: Option<u32>,
    /// How much of the device's time the tenant gets in relation to others that want some.
    pub weight: u32,
    /// The longest time of a kernel, in seconds, if the line says so.
    pub kernel_timeout_s: Option<u32>,
    /// The most sessions that the tenant may begin in a second, if the line says so.
    pub connections_per_second: Option<u32>,
    /// The most requests of the tenant's that are read in a second, if the line says so.
    pub requests_per_second: Option<u32>,
    /// The most sessions of the tenant's that are kept while they have no connection, if the line says so.
    pub parked_max: Option<u32>,
    /// The serial number of the certificate that says all this; `None` if a line does.
    pub serial: Option<u64>,
}

impl Grant {
    /// Returns what a key gets whose line says nothing but the tenant.
    pub fn new(key: PublicKey, tenant: &str) -> Self {
        let tenant = tenant.to_owned();
        Self {
            key,
            tenant,
            memory_max_bytes: None,
            memory_total_bytes: None,
            sessions_max: None,
            weight: 1,
            kernel_timeout_s: None,
            connections_per_second: None,
            requests_per_second: None,
            parked_max: None,
            serial: None,
        }
    }

    /// Lets the tenant have no more memory than this, if it says something.
    pub(crate) fn bound_total(&mut self, bytes: Option<u64>) {
        self.memory_total_bytes = least(self.memory_total_bytes, bytes);
    }

    /// Returns a number that stands for the tenant, and no other as far as anybody can make it so.
    pub fn tenant_number(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = sha256(self.tenant.as_bytes());
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }
}

/// The most sessions that a line can give a tenant.
const SESSIONS_MAX: u32 = 1 << 16;
/// The highest rate.
const RATE_MAX: u32 = 1_000_000_000;
/// The most weight.
const WEIGHT_MAX: u32 = 100;

/// What a line behind its key, an invitation or a certificate gives: `tenant=NAME`, `memory-max=SIZE`, `memory-total=SIZE`,
/// `sessions-max=N`, `parked-max=N`, `weight=N`, `kernel-timeout=SECONDS`, `connections-per-second=N` and `requests-per-second=N`, in any order, each once at most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    tenant: Option<String>,
    memory_max: Option<Size>,
    memory_total: Option<Size>,
    sessions_max: Option<u32>,
    weight: Option<u32>,
    kernel_timeout_s: Option<u32>,
    connections_per_second: Option<u32>,
    requests_per_second: Option<u32>,
    parked_max: Option<u32>,
}

/// Returns the smaller one of two limits, each of which may not be said.
fn least<T: PartialOrd>(given: Option<T>, bound: Option<T>) -> Option<T> {
    match (given, bound) {
        (Some(given), Some(bound)) => Some(if bound < given { bound } else { given }),
        (given, bound) => given.or(bound),
    }
}

/// Parses a number from 1 to `max`.
fn number(text: &str, max: u32) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=max).contains(number));
    number.ok_or_else(|| format!("'{text}' is not a number from 1 to {max}"))
}

impl Grants {
    /// Reads words; see the type.
    ///
    /// # Errors
    /// A word is none of these, comes again, or has no such value.
    pub(crate) fn parse(words: &mut dyn Iterator<Item = &str>) -> Result<Self, String> {
        let mut terms = Self::default();
        for word in words {
            let is_new = match word.split_once('=') {
                Some(("tenant", name)) => {
                    check_tenant(name)?;
                    terms.tenant.replace(name.to_owned()).is_none()
                }
                Some(("memory-max", size)) => {
                    let size = size.parse().map_err(|why| format!("memory-max: {why}"))?;
                    terms.memory_max.replace(size).is_none()
                }
                Some(("memory-total", size)) => {
                    let size = Size::of_total(size).map_err(|why| format!("memory-total: {why}"))?;
                    terms.memory_total.replace(size).is_none()
                }
                Some((name @ "sessions-max", text)) => {
                    let count = number(text, SESSIONS_MAX).map_err(|why| format!("{name}: {why}"))?;
                    terms.sessions_max.replace(count).is_none()
                }
                Some((name @ "parked-max", text)) => {
                    let count = number(text, SESSIONS_MAX).map_err(|why| format!("{name}: {why}"))?;
                    terms.parked_max.replace(count).is_none()
                }
                Some((name @ "weight", text)) => {
                    let weight = number(text, WEIGHT_MAX).map_err(|why| format!("{name}: {why}"))?;
                    terms.weight.replace(weight).is_none()
                }
                Some((name @ "kernel-timeout", text)) => {
                    let seconds = number(text, u32::MAX).map_err(|why| format!("{name}: {why}"))?;
                    terms.kernel_timeout_s.replace(seconds).is_none()
                }
                Some((name @ "connections-per-second", text)) => {
                    let count = number(text, RATE_MAX).map_err(|why| format!("{name}: {why}"))?;
                    terms.connections_per_second.replace(count).is_none()
                }
                Some((name @ "requests-per-second", text)) => {
                    let count = number(text, RATE_MAX).map_err(|why| format!("{name}: {why}"))?;
                    terms.requests_per_second.replace(count).is_none()
                }
                _ => {
                    return Err(format!(
                        "'{word}' is none of tenant=NAME, memory-max=SIZE, memory-total=SIZE, sessions-max=N, parked-max=N, weight=N, kernel-timeout=SECONDS, connections-per-second=N and requests-per-second=N"
                    ));
                }
            };
            if !is_new {
                return Err(format!("'{word}' says again what the line has said"));
            }
        }
        Ok(terms)
    }

    pub(crate) fn new(tenant: Option<String>, memory_max: Option<Size>) -> Result<Self, String> {
        tenant.as_deref().map_or(Ok(()), check_tenant)?;
        Ok(Self { tenant, memory_max, ..Self::default() })
    }

    /// Returns these grants, with the smaller value of each limit where both say one, and that of `bounds` where only that does.
    fn at_most(self, bounds: &Self) -> Self {
        Self {
            tenant: self.tenant,
            memory_max: least(self.memory_max, bounds.memory_max),
            memory_total: least(self.memory_total, bounds.memory_total),
            sessions_max: least(self.sessions_max, bounds.sessions_max),
            // Who says no weight has the weight 1, which no bound is below.
            weight: self.weight.and_then(|weight| least(Some(weight), bounds.weight)),
            kernel_timeout_s: least(self.kernel_timeout_s, bounds.kernel_timeout_s),
            connections_per_second: least(self.connections_per_second, bounds.connections_per_second),
            requests_per_second: least(self.requests_per_second, bounds.requests_per_second),
            parked_max: least(self.parked_max, bounds.parked_max),
        }
    }

    pub(crate) fn for_key(self, key: PublicKey) -> Grant {
        let tenant = self.tenant.unwrap_or_else(|| key.fingerprint().to_string());
        Grant {
            memory_max_bytes: self.memory_max.map(|size| size.0),
            memory_total_bytes: self.memory_total.map(|size| size.0),
            sessions_max: self.sessions_max,
            weight: self.weight.unwrap_or(1),
            kernel_timeout_s: self.kernel_timeout_s,
            connections_per_second: self.connections_per_second,
            requests_per_second: self.requests_per_second,
            parked_max: self.parked_max,
            ..Grant::new(key, &tenant)
        }
    }
}

impl FromStr for Grants {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(&mut text.split_whitespace())
    }
}

/// Every word has a blank before it.
impl fmt::Display for Grants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(tenant) = &self.tenant {
            write!(f, " tenant={tenant}")?;
        }
        for (name, size) in [("memory-max", self.memory_max), ("memory-total", self.memory_total)] {
            if let Some(size) = size {
                write!(f, " {name}={size}")?;
            }
        }
        for (name, number) in [
            ("sessions-max", self.sessions_max),
            ("parked-max", self.parked_max),
            ("weight", self.weight),
            ("kernel-timeout", self.kernel_timeout_s),
            ("connections-per-second", self.connections_per_second),
            ("requests-per-second", self.requests_per_second),
        ] {
            if let Some(number) = number {
                write!(f, " {name}={number}")?;
            }
        }
        Ok(())
    }
}

/// The most that certificates of an authority can give: limits as those of a key, and the tenants that they may name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    limits: Grants,
    tenant: Option<TenantRule>,
}

/// Which tenants an authority may name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum TenantRule {
    /// This one, which is also that of certificates that name none.
    Only(String),
    /// Those whose names begin so.
    Prefix(String),
}

impl Bounds {
    /// Reads the words that [`Grants`] has; behind `tenant=` is a name, or the beginning of names and `*`.
    pub(crate) fn parse(words: &mut dyn Iterator<Item = &str>) -> Result<Self, String> {
        let mut tenant = None;
        let mut others = Vec::new();
        for word in words {
            let Some(name) = word.strip_prefix("tenant=") else {
                others.push(word);
                continue;
            };
            let rule = match name.strip_suffix('*') {
                Some(prefix) => check_tenant(prefix).map(|()| TenantRule::Prefix(prefix.to_owned())),
                None => check_tenant(name).map(|()| TenantRule::Only(name.to_owned())),
            };
            if tenant.replace(rule?).is_some() {
                return Err(format!("'{word}' says again what the line has said"));
            }
        }
        Ok(Self { limits: Grants::parse(&mut others.into_iter())?, tenant })
    }

    /// Returns what a certificate gives within these bounds.
    ///
    /// # Errors
    /// It belongs to a tenant that the authority may not name; returns its name, which is empty if the certificate names none.
    pub(crate) fn within(&self, mut given: Grants) -> Result<Grants, String> {
        let is_allowed = match (&self.tenant, &given.tenant) {
            (None, _) => true,
            (Some(TenantRule::Only(only)), None) => {
                given.tenant = Some(only.clone());
                true
            }
            (Some(TenantRule::Only(only)), Some(name)) => name == only,
            (Some(TenantRule::Prefix(prefix)), Some(name)) => name.starts_with(prefix.as_str()),
            (Some(TenantRule::Prefix(_)), None) => false,
        };
        if is_allowed { Ok(given.at_most(&self.limits)) } else { Err(given.tenant.unwrap_or_default()) }
    }
}

fn check_tenant(name: &str) -> Result<(), String> {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@".contains(&byte);
    if (1..=TENANT_MAX_BYTES).contains(&name.len()) && name.bytes().all(is_good) {
        Ok(())
    } else {
        Err(format!(
            "a tenant's name has 1 to {TENANT_MAX_BYTES} letters, digits, dots, dashes, underscores or @"
        ))
    }
}
