use std::sync::Arc;

use hipr_proto::Limits;
use hipr_tls::WorkerIdentity;

use crate::{Audit, Budget, Ledger};

/// Limits of an event loop, and who may connect. Every buffer between a socket and the device has one.
#[derive(Clone, Debug)]
pub struct Config {
    /// The worker's key and whom it lets in; then a TCP connection is encrypted, and nothing else is accepted there.
    pub identity: Option<Arc<WorkerIdentity>>,
    /// Whether the kernel encrypts what is sent to clients with keys (kTLS), where it can.
    pub ktls: bool,
    /// Maximum bytes that the kernel encrypts with one key; the session then goes on over another connection. What the cipher allows may be less.
    pub ktls_key_max_bytes: u64,
    /// Keeps a record of sessions and of those who get none.
    pub audit: Option<Arc<dyn Audit>>,
    /// Counts what sessions in several processes have together; `None`: all are in this one.
    pub ledger: Option<Arc<dyn Ledger>>,
    /// Limits of the protocol: the longest message, and the most open requests of a connection.
    pub protocol: Limits,
    /// Maximum number of connections; further ones are closed at once.
    pub connections_max: usize,
    /// Maximum number of connections from one address; `None` as [`Seats::new`](crate::Seats::new) says.
    pub connections_per_address_max: Option<usize>,
    /// Maximum number of connections of one address that are accepted in a second; further ones are closed at once.
    pub connections_per_second: Option<u32>,
    /// Maximum number of requests that are read in a second of a tenant, or of an address without a key; further ones stay in the socket.
    /// What a tenant's line says comes before it.
    pub requests_per_second: Option<u32>,
    /// Maximum bytes in flight of one connection: memory of requests that the dispatch has not finished
    /// ([`Batch::cost_bytes`](crate::Batch::cost_bytes)). While it is reached, the socket is not read.
    pub in_flight_max_bytes: usize,
    /// Maximum bytes in flight of all connections. While it is reached, a connection is read only if it has none in flight,
    /// and at most [`Config::SMALL_READ_BYTES`] at a time, so that no connection can block the others.
    pub in_flight_total_max_bytes: usize,
    /// Maximum bytes of replies to one connection that the peer has not received. When it is reached, the socket is not
    /// read and the dispatch produces no replies until half of them are sent.
    pub unsent_max_bytes: usize,
    /// Time after which a connection is closed that has sent no complete message.
    pub first_message_timeout_ms: u64,
    /// Time after which a connection is closed that has stopped in the middle of a message.
    pub mid_message_timeout_ms: u64,
    /// Time after which a connection is closed that has sent nothing and was owed nothing; `None` is without limit.
    pub idle_timeout_ms: Option<u64>,
    /// Time for which a peer that has closed its sending side is still sent replies, and for which a peer that has been
    /// sent everything may take to close its side.
    pub linger_ms: u64,
    /// Time for which the session of a TCP connection that was cut is kept for its client; 0: it ends at once.
    pub resume_timeout_ms: u64,
    /// Maximum number of sessions of a tenant, or of an address without a key, that are kept while they have no connection. One more ends
    /// with its connection. What a tenant's line says comes before it.
    pub parked_max: Option<u32>,
    /// Maximum bytes that a session which outlives its connection keeps until its client has them, and that its client may have sent
    /// without an acknowledgement.
    pub resume_ring_bytes: usize,
    /// What all sessions may have together, in which counts what such sessions keep.
    pub budget: Arc<Budget>,
    /// The number by which who accepts connections finds the process of a session ([`Terms::route`](hipr_resume::Terms::route)); 0: this
    /// process accepts them itself.
    pub resume_route: u64,
    /// Time for which an idle loop polls shared-memory connections after the last activity, before it sleeps.
    pub spin_us: u64,
    /// Bytes read from one connection before the next gets its turn.
    pub turn_max_bytes: usize,
    /// Bytes read from all connections before the handler gets its turn; small enough that they are still in the cache.
    pub turn_total_max_bytes: usize,
}

impl Config {
    /// Size of the buffer that sockets are read into.
    pub const READ_BYTES: usize = 256 * 1024;
    /// Size up to which a read is copied to a smaller buffer instead of passing on the read buffer.
    pub const SMALL_READ_BYTES: usize = 16 * 1024;
}

impl Default for Config {
    fn default() -> Self {
        Self {
            identity: None,
            ktls: true,
            ktls_key_max_bytes: u64::MAX,
            audit: None,
            ledger: None,
            protocol: Limits::default(),
            connections_max: 16384,
            connections_per_address_max: None,
            connections_per_second: None,
            requests_per_second: None,
            in_flight_max_bytes: 4 << 20,
            in_flight_total_max_bytes: 64 << 20,
            unsent_max_bytes: 4 << 20,
            first_message_timeout_ms: 10_000,
            mid_message_timeout_ms: 10_000,
            idle_timeout_ms: None,
            linger_ms: 5_000,
            resume_timeout_ms: 60_000,
            parked_max: None,
            resume_ring_bytes: 8 << 20,
            budget: Arc::default(),
            resume_route: 0,
            spin_us: 50,
            turn_max_bytes: 256 << 10,
            turn_total_max_bytes: 1 << 20,
        }
    }
}
