//! What a trace consists of.

/// Categories of slices, by which a summary knows what they are.
pub mod category {
    /// The program, from its beginning to its end.
    pub const PROGRAM: &str = "program";
    /// What only the trace does: at the end of a program it waits for the last that the worker tells.
    pub const TRACE: &str = "trace";
    /// A call of a HIP function.
    pub const CALL: &str = "call";
    /// A thread waits for the worker's answer to a request, or for a connection to it.
    pub const WAIT: &str = "wait";
    /// Bytes are given to the network.
    pub const SEND: &str = "send";
    /// The worker carries out a request.
    pub const REQUEST: &str = "request";
    /// The device does the work of a request.
    pub const WORK: &str = "work";
}

/// Names of what is said of a slice.
pub mod arg {
    /// The number of a call among those of its process, from 1 on.
    pub const CALL: &str = "call";
    /// The error that a call returns.
    pub const ERROR: &str = "error";
    /// The calls on the stack, innermost first: `PATH+0xOFFSET`, with `;` between them. Offsets are those in the file.
    pub const STACK: &str = "stack";
    /// The line of the program's source, once it was looked up.
    pub const LINE: &str = "line";
    /// A request, by a text that no other request of the trace has: the number of the process and that of the request on its connection.
    pub const REQUEST: &str = "request";
    /// Bytes that were sent.
    pub const SENT_BYTES: &str = "sent_bytes";
    /// Bytes that were received.
    pub const RECEIVED_BYTES: &str = "received_bytes";
    /// How long something was in a queue before its turn, in nanoseconds.
    pub const QUEUED_NS: &str = "queued_ns";
    /// A kernel.
    pub const KERNEL: &str = "kernel";
    /// A stream.
    pub const STREAM: &str = "stream";
    /// How far the clocks of client and worker may be apart, in nanoseconds.
    pub const UNCERTAINTY_NS: &str = "clock_uncertainty_ns";
    /// What was lost because there was no room for it, in events.
    pub const LOST: &str = "lost";
}

/// Name of the track that shows how many bytes a process has received so far, by which a summary knows it.
pub const RECEIVED: &str = "network: bytes received";

/// The value of something that is said of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Number(u64),
    /// A text.
    Text(String),
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// What a track shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrackKind {
    /// A process, which other tracks belong to.
    Process {
        /// Its number.
        pid: u32,
    },
    /// A thread of a process.
    Thread {
        /// The number of the process.
        pid: u32,
        /// The number of the thread.
        tid: u32,
    },
    /// Slices that are not those of a thread.
    Slices,
    /// A number of bytes that changes.
    Bytes,
}

/// A row of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Track {
    /// A number that no other track of the trace has.
    pub id: u64,
    /// The track that it belongs to; 0 for a process.
    pub parent: u64,
    /// What it shows.
    pub kind: TrackKind,
    /// Its name.
    pub name: String,
}

/// Something that takes time. Slices of one track either contain each other or are apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// The track.
    pub track: u64,
    /// What is going on.
    pub name: String,
    /// One of [`category`].
    pub category: String,
    /// When it began, in nanoseconds of the client's monotonic clock.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// The flows that lead through it, each a number that only slices of the flow have.
    pub flows: Vec<u64>,
    /// What else is said of it.
    pub args: Vec<(String, Value)>,
}

impl Slice {
    /// Returns how long it takes, in nanoseconds.
    pub fn len_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// Returns what is said of it under this name.
    pub fn arg(&self, name: &str) -> Option<&Value> {
        self.args.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Returns the number that is said of it under this name.
    pub fn number(&self, name: &str) -> Option<u64> {
        if let Some(Value::Number(number)) = self.arg(name) { Some(*number) } else { None }
    }

    /// Returns the text that is said of it under this name.
    pub fn text(&self, name: &str) -> Option<&str> {
        if let Some(Value::Text(text)) = self.arg(name) { Some(text) } else { None }
    }
}

/// A part of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A row, said before what is in it.
    Track(Track),
    /// Something that takes time.
    Slice(Slice),
    /// Something that happens at once: a slice without length.
    Instant(Slice),
    /// A number changes.
    Count {
        /// The track.
        track: u64,
        /// When, in nanoseconds.
        at_ns: u64,
        /// The new value.
        value: u64,
    },
}

impl Item {
    /// Returns when it is over; `None` for a track.
    pub fn end_ns(&self) -> Option<u64> {
        match self {
            Self::Track(_) => None,
            Self::Slice(slice) | Self::Instant(slice) => Some(slice.end_ns),
            Self::Count { at_ns, .. } => Some(*at_ns),
        }
    }

    /// Returns whether it is the row of a process.
    pub fn is_process(&self) -> bool {
        matches!(self, Self::Track(track) if matches!(track.kind, TrackKind::Process { .. }))
    }
}

/// Numbers of the tracks of a process; [`id`](track::id) makes of one the number that no other track of the trace has.
pub mod track {
    /// The process itself.
    pub const PROCESS: u32 = 1;
    /// Writes to the network.
    pub const SENDING: u32 = 2;
    /// Bytes that were sent.
    pub const SENT: u32 = 3;
    /// Bytes that were received.
    pub const RECEIVED: u32 = 4;
    /// Requests on the worker.
    pub const WORKER: u32 = 5;
    /// The whole program.
    pub const PROGRAM: u32 = 6;
    /// Threads and streams have numbers above this one.
    pub const OTHERS: u32 = 16;

    /// Returns the number of a track of the process `pid`.
    pub fn id(pid: u32, track: u32) -> u64 {
        u64::from(pid) << 32 | u64::from(track)
    }
}
