//! What workers are compared with.

use super::place::Core;
use super::process::Process;
use super::raw::Raw;
use super::setup::Transport;

/// The processes on the other end of what is compared.
pub(crate) struct Peers {
    /// A worker as the protocol's contract describes one.
    pub(crate) contract: Process,
    raw: Process,
    transport: Transport,
}

impl Peers {
    /// Starts them on that core or on any; where `transport` is no socket, they are reached by the nearest one.
    ///
    /// # Errors
    /// One does not start.
    pub(crate) fn start(transport: Transport, core: Option<Core>) -> Result<Self, String> {
        let transport = transport.socket();
        let peer = |service| Process::server(&["bench", "peer", service], transport, core);
        Ok(Self { contract: peer("contract")?, raw: peer("raw")?, transport })
    }

    /// A connection over which bytes are moved as such.
    ///
    /// # Errors
    /// The process is gone.
    pub(crate) fn raw(&self) -> Result<Raw, String> {
        Raw::connect(self.raw.address())
    }

    /// What reports call the first.
    pub(crate) fn contract_name(&self) -> String {
        format!("contract-style worker over {}", self.transport)
    }

    /// What reports call a raw stream.
    pub(crate) fn raw_name(&self) -> String {
        format!("raw {} stream", self.transport)
    }
}
