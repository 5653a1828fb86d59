//! Whom something counts for.

use std::net::IpAddr;

use hipr_tls::Grant;

use crate::Peer;
use crate::seats::network;

/// Whom something counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Payer {
    /// A tenant, by its number.
    Tenant(u64),
    /// An address, or a network of IPv6.
    Address(IpAddr),
    /// A user of this machine, by number.
    User(u32),
    /// Everybody else.
    Others,
}

impl Payer {
    /// Returns whom a connection counts for: its tenant if it has proved a key, else its address.
    pub fn of(peer: Peer, grant: Option<&Grant>) -> Self {
        match (grant, peer) {
            (Some(grant), _) => Self::Tenant(grant.tenant_number()),
            (None, Peer::Tcp(address)) => Self::Address(network(address)),
            (None, Peer::Process { uid, .. }) => Self::User(uid),
            (None, Peer::Local) => Self::Others,
        }
    }
}
