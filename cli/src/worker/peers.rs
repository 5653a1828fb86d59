//! Copies between this worker and others: which it may connect to, and how it reads what a session there has given a capability for.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use hipr_client::{CallError, Capability, Connection};
use hipr_proto::{HipError, HipResult};
use hipr_tls::{ClientIdentity, Fingerprint, HostPatterns, SecretKey, host_of};
use hipr_worker::{Capabilities, CapabilityReader, PeerCapability, Peers};
use tracing::{debug, info};

/// Time within which another worker has to be reached.
const CONNECT: Duration = Duration::from_secs(5);

/// Options for copies between workers.
#[derive(Debug, Args)]
#[command(next_help_heading = "Copies between workers")]
pub(super) struct PeerOptions {
    /// The other workers to which this one connects when a program that uses both copies between them: names and addresses of hosts as the
    /// program writes them, with commas between them, * for any characters; none: the program's process passes the bytes on. With
    /// --isolate process it is always none.
    #[arg(long, value_name = "HOSTS", default_value = "*")]
    peers: Hosts,
}

/// To which hosts the worker may connect.
#[derive(Clone, Debug)]
enum Hosts {
    None,
    Some(HostPatterns),
}

impl FromStr for Hosts {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "none" { Ok(Self::None) } else { text.parse().map(Self::Some) }
    }
}

impl PeerOptions {
    /// Returns what copies between this worker and others need, with these capabilities; `None` if there are to be none. The worker shows others a
    /// key that is made now: it is the capability that counts.
    ///
    /// # Errors
    /// A key cannot be made.
    pub(super) fn peers(&self, capabilities: Arc<Capabilities>) -> Result<Option<Peers>, String> {
        let Hosts::Some(hosts) = self.peers.clone() else { return Ok(None) };
        let key = SecretKey::generate().map_err(|why| why.to_string())?;
        let identity = ClientIdentity::new(&key).map_err(|why| why.to_string())?;
        Ok(Some(Peers::new(capabilities, Arc::new(Reader { hosts, identity }))))
    }
}

/// Reads from other workers over connections of its own.
struct Reader {
    hosts: HostPatterns,
    identity: ClientIdentity,
}

impl CapabilityReader for Reader {
    fn read(
        &self,
        capability: &PeerCapability,
        take: &mut dyn FnMut(Vec<u8>) -> Option<Vec<u8>>,
    ) -> HipResult<()> {
        let address = capability.address.as_str();
        if !self.hosts.matches(host_of(address)) {
            info!(address, "a copy from another worker is refused: --peers does not name it");
            return Err(HipError::PEER_ACCESS_UNSUPPORTED);
        }
        let PeerCapability { worker, token, len_bytes, .. } = *capability;
        let worker = worker.map(Fingerprint::from_bytes);
        let there = Capability { host_and_port: address, worker, token, len_bytes };
        let connection = Connection::for_capability(&there, &self.identity, CONNECT).map_err(|why| {
            // The program is told no more than that: it need not know what this machine reaches.
            info!(address, why = why.reason, "cannot copy from another worker");
            HipError::PEER_ACCESS_UNSUPPORTED
        })?;
        debug!(address, len_bytes, "copying from another worker");
        connection.read_capability(&there, take).map_err(|why| match why {
            // That there is no such capability is nothing that the program has done.
            CallError::Lost | CallError::Hip(HipError::INVALID_HANDLE | HipError::NOT_SUPPORTED) => {
                info!(address, %why, "a copy from another worker has ended early");
                HipError::PEER_ACCESS_UNSUPPORTED
            }
            CallError::Hip(error) => error,
        })
    }
}
