use hipr_proto::Limits;

/// Limits of a loop. Every buffer between a socket and the device has one.
#[derive(Clone, Debug)]
pub struct Config {
    /// Limits of the protocol: longest message, most unanswered requests of a connection.
    pub protocol: Limits,
    /// Connections at a time; one more is closed at once.
    pub connections_max: usize,
    /// Bytes of one connection's requests that the dispatch has not finished with. At the limit the socket is not read.
    pub in_flight_max_bytes: usize,
    /// The same for all connections together. At the limit a connection is read only while nothing of it is in flight, and
    /// then no more than [`Config::SMALL_READ_BYTES`] at a time, so that none can keep the others out.
    pub in_flight_total_max_bytes: usize,
    /// Bytes of replies of one connection that the peer has not taken. At the limit the socket is not read, and the dispatch
    /// produces no more until half of it is gone.
    pub unsent_max_bytes: usize,
    /// A connection that has sent no complete message so long after it was opened is closed.
    pub first_message_timeout_ms: u64,
    /// A connection that stops in the middle of a message for so long is closed.
    pub mid_message_timeout_ms: u64,
    /// How long a peer that has closed its sending side may still be owed replies, and how long one that was told everything
    /// may take to close its side.
    pub linger_ms: u64,
    /// How long a loop that has nothing to do looks again and again at connections through shared memory, after one of them had
    /// something, before it sleeps.
    pub spin_us: u64,
    /// Bytes read from one connection before it is another's turn.
    pub turn_max_bytes: usize,
    /// Bytes read from all connections before the handler gets its turn: what it is given should still be in the cache, and
    /// nobody waits for more.
    pub turn_total_max_bytes: usize,
}

impl Config {
    /// Size of the buffer that a socket is read into.
    pub const READ_BYTES: usize = 256 * 1024;
    /// A read of at most so many bytes is copied into a buffer of its size instead of keeping the read buffer.
    pub const SMALL_READ_BYTES: usize = 16 * 1024;
}

impl Default for Config {
    fn default() -> Self {
        Self {
            protocol: Limits::default(),
            connections_max: 16384,
            in_flight_max_bytes: 4 << 20,
            in_flight_total_max_bytes: 64 << 20,
            unsent_max_bytes: 4 << 20,
            first_message_timeout_ms: 10_000,
            mid_message_timeout_ms: 10_000,
            linger_ms: 5_000,
            spin_us: 50,
            turn_max_bytes: 256 << 10,
            turn_total_max_bytes: 1 << 20,
        }
    }
}
