//! What happened in a shim world, in order: at the doors of the program, of its functions and of the worker.

use std::fmt;

use super::script::{Place, Target, WorldStream};

/// Largest number of items of a world; calls beyond it are left out.
pub(super) const ITEMS_MAX: usize = 240;

/// Who reads, writes or opens: a thread of the program or a host function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// A thread, by its number.
    Thread(usize),
    /// A host function, by its item.
    Function(usize),
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded.
    Ok,
    /// The queried work is not done.
    NotReady,
    /// Another error of HIP.
    Error(i32),
}

/// What is over when a call that puts work on a stream returns (HIP API: synchronous copies and fills).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shows {
    /// Nothing.
    Nothing,
    /// The work itself, for the program.
    Own,
    /// The work and what is before it, for all later work.
    Later,
    /// The work and what is before it, for all later work and for the program.
    All,
}

/// Who executes work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The worker.
    Worker,
    /// The process: only memory of the program is used.
    Process,
    /// The process, in a call that waits for it: nobody can take what is before it for done.
    Call,
    /// The process, when another worker has said that what is before it is done.
    Across,
}

/// What a call asks for. Streams and events have numbers that are never used twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// Work on a stream, one item after the other.
    Work {
        /// The stream.
        stream: usize,
        /// The items.
        items: Vec<usize>,
        /// What is over when the call returns.
        shows: Shows,
        /// Whether HIP lets the call wait for what is before it.
        may_wait: bool,
    },
    /// A wait.
    Wait(Target),
    /// A query.
    Query(Target),
    /// The record of an event.
    Record {
        /// The event.
        event: usize,
        /// The stream.
        stream: usize,
    },
    /// A stream's wait for an event.
    Await {
        /// The event.
        event: usize,
        /// The stream.
        stream: usize,
    },
    /// The end of a stream, an event or a graph.
    End,
    /// A call whose work is captured.
    Nothing,
}

impl Ask {
    /// Returns whether it is a record of the event.
    pub(super) fn records(&self, event: usize) -> bool {
        matches!(self, Self::Record { event: other, .. } if *other == event)
    }

    /// Returns whether it is a wait for the event or a query.
    pub(super) fn asks_for(&self, event: usize) -> bool {
        matches!(self, Self::Wait(Target::Event(other)) | Self::Query(Target::Event(other)) if *other == event)
    }
}

/// The kinds of items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemKind {
    /// A kernel, a fill or a copy.
    Work,
    /// A host function.
    Function,
    /// A write of the program, or of a host function.
    Write,
}

/// An item: one piece of work, one host function, or one write of the program.
#[derive(Debug, Clone)]
pub struct Item {
    /// The kind.
    pub kind: ItemKind,
    /// What it is, for people.
    pub name: String,
    /// The words that it will write.
    pub writes: Vec<Place>,
    /// The stream that it was put on, if it was.
    pub stream: Option<usize>,
    /// The device of a kernel in a graph that is launched on a stream of another one. Waits for that device tell of its errors.
    pub beside: Option<i32>,
    /// Whether its outcome is decided when its call returns: it only writes to memory of the device what is known then, and its
    /// ranges are good. Where waits are lazy, so is that of all work that only writes to memory of the device. A wait need not wait for
    /// it, if all that comes later does.
    pub is_decided: bool,
}

/// An event.
#[derive(Debug, Clone)]
pub enum Event {
    /// A call began.
    Began {
        /// The thread.
        thread: usize,
        /// What it asks for.
        ask: Ask,
        /// Whether the worker, and the threads of host functions apart from the functions, had nothing to do then.
        is_idle: bool,
    },
    /// A call waits for host functions that are not over.
    Waits {
        /// The thread.
        thread: usize,
    },
    /// A call ended.
    Ended {
        /// The thread.
        thread: usize,
        /// How.
        outcome: Outcome,
        /// Whether the worker was given nothing since the call began.
        is_idle: bool,
    },
    /// The worker answered a thread's wait with success.
    Answered {
        /// The thread.
        thread: usize,
    },
    /// A query said by itself that something is not ready, although that is done and the worker has told so.
    Stale {
        /// The thread.
        thread: usize,
    },
    /// Work was executed: by the worker, or in the program's memory alone.
    Executed {
        /// The item.
        item: usize,
        /// The words that it read, with what was there.
        reads: Vec<(Place, u32)>,
        /// The words that it wrote, with what is there now.
        writes: Vec<(Place, u32)>,
        /// Who has executed it.
        by: By,
    },
    /// Work was given to another worker than its stream's: whatever this one is given later comes behind it.
    Sent {
        /// The item.
        item: usize,
    },
    /// The worker or the process was asked for work that no call wants now.
    Unasked {
        /// The work.
        what: String,
    },
    /// Work was refused: it will not be executed.
    Refused {
        /// The item.
        item: usize,
    },
    /// Work that was executed has left an error.
    Erred {
        /// The item.
        item: usize,
    },
    /// An answer of the worker told the error of work.
    Told {
        /// The item.
        item: usize,
    },
    /// A host function began.
    FunctionBegan {
        /// Its item.
        item: usize,
    },
    /// A host function ended, and the thread that executes it said so.
    FunctionEnded {
        /// Its item.
        item: usize,
    },
    /// A word was read by the program.
    Read {
        /// The reader.
        who: Who,
        /// The word.
        place: Place,
        /// What was there.
        value: u32,
    },
    /// A word was written by the program.
    Wrote {
        /// The writer.
        who: Who,
        /// The item of the write.
        item: usize,
        /// The word.
        place: Place,
        /// What is there now.
        value: u32,
    },
    /// A gate was opened.
    Opened {
        /// Who opened it; `None` if the world did, because nothing else could go on.
        who: Option<Who>,
        /// The gate.
        gate: usize,
    },
    /// A host function went through an open gate.
    Passed {
        /// Its item.
        item: usize,
        /// The gate.
        gate: usize,
    },
    /// Nothing can go on any more.
    Still {
        /// The threads that wait for host functions or the worker.
        waiting: Vec<usize>,
        /// Whether a host function waits at a gate.
        at_gate: bool,
    },
}

/// The events of a world. It is printed as a list of its items and of what happened, in order.
#[derive(Debug, Default)]
pub struct Trace {
    /// The streams, by their numbers.
    pub streams: Vec<WorldStream>,
    /// Number of events that ever were.
    pub events_made: usize,
    /// The items.
    pub items: Vec<Item>,
    /// The events.
    pub events: Vec<Event>,
    /// What is in memory at first, one word for each of the first items.
    pub start: Vec<(Place, u32)>,
    /// What was left of streams, events and graphs when all had ended.
    pub left: Vec<String>,
    /// Whether waits pass over work that could show the program nothing, so that its errors come with later ones.
    pub is_lazy: bool,
    /// Whether each device is of a worker of its own, so that no order of what they do can be seen but by what it shows.
    pub are_apart: bool,
    /// The message of a panic.
    pub panic: Option<String>,
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, item) in self.items.iter().enumerate() {
            write!(f, "item {number}: {}", item.name)?;
            for place in &item.writes {
                write!(f, ", writes {place}")?;
            }
            writeln!(f)?;
        }
        self.events.iter().try_for_each(|event| writeln!(f, "{event:?}"))
    }
}
