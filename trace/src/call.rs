//! Calls of a program, as a summary lists them.

/// The calls of one function, made at one line of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The function.
    pub function: String,
    /// The line of the program, or the place in its machine code, if it is known.
    pub line: Option<String>,
    /// How many calls there were.
    pub count: u64,
    /// How many of them returned an error.
    pub errors: u64,
    /// How long they took together, in nanoseconds.
    pub taken_ns: u64,
    /// How many answers of the worker they waited for.
    pub waits: u64,
    /// How long they waited, in nanoseconds.
    pub waited_ns: u64,
    /// For how long of that the worker had the request: it waited for the device, or was busy.
    pub device_ns: u64,
    /// Bytes that came with the answers.
    pub received_bytes: u64,
    /// Bytes of the requests.
    pub sent_bytes: u64,
    /// Whether one of them connected to the worker.
    pub connects: bool,
}
