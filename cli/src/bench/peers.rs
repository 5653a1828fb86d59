//! The reference processes with which the benchmark compares workers.

use super::place::Core;
use super::process::Process;
use super::raw::Raw;
use super::transport::Transport;

/// The reference processes with which the benchmark compares workers.
pub(crate) struct Peers {
    /// A simple worker, as HIPR 1.0 describes one.
    pub(crate) contract: Process,
    raw: Process,
    transport: Transport,
}

impl Peers {
    /// Starts the processes on `core` or on any. If `transport` is shared memory, they are reached over the nearest kind of
    /// socket.
    ///
    /// # Errors
    /// One does not start.
    pub(crate) fn start(transport: Transport, core: Option<Core>) -> Result<Self, String> {
        let transport = transport.socket();
        let peer = |service| Process::server(&["bench", "peer", service], transport, core);
        Ok(Self { contract: peer("contract")?, raw: peer("raw")?, transport })
    }

    /// Opens a connection that carries raw bytes.
    ///
    /// # Errors
    /// The process is gone.
    pub(crate) fn raw(&self) -> Result<Raw, String> {
        Raw::connect(self.raw.address())
    }

    /// Returns the name of the simple worker in reports.
    pub(crate) fn contract_name(&self) -> String {
        format!("contract-style worker over {}", self.transport)
    }

    /// Returns the name of a raw stream in reports.
    pub(crate) fn raw_name(&self) -> String {
        format!("raw {} stream", self.transport)
    }
}
