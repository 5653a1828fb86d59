//! What the program of a shim world does: its memory, streams, events and gates, and the acts of its threads.

use std::fmt;

use crate::choices::{Choices, seed_bytes};

/// Number of words of each piece of memory.
pub const WORDS: usize = 4;

/// The kind of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamKind {
    /// The legacy null stream.
    Legacy,
    /// `hipStreamPerThread`.
    PerThread,
    /// Made without flags: it and the legacy stream wait for each other.
    Blocking,
    /// Made with `hipStreamNonBlocking`.
    NonBlocking,
}

/// A stream of a world.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct WorldStream {
    /// Its kind.
    pub kind: StreamKind,
    /// The device that has it: 0 or 1.
    pub device: i32,
}

impl fmt::Debug for WorldStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.device {
            0 => write!(f, "{:?}", self.kind),
            device => write!(f, "{:?} of device {device}", self.kind),
        }
    }
}

/// The kind of a piece of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryKind {
    /// `hipMalloc`.
    Device,
    /// Memory of the program that HIP does not know.
    Pageable,
    /// Pinned memory that kernels reach once they are told its address.
    Pinned,
    /// Pinned memory that all kernels reach.
    Mapped,
    /// Pinned memory that all kernels reach, at another address than the program.
    Elsewhere,
    /// Managed memory.
    Managed,
    /// Memory of the program that was registered.
    Registered,
}

impl MemoryKind {
    /// Returns whether the program can read and write it.
    pub fn is_of_host(self) -> bool {
        self != Self::Device
    }

    /// Returns whether a kernel can have a pointer to such memory as an argument.
    pub fn is_of_kernels(self) -> bool {
        self != Self::Pageable
    }

    /// Returns whether it is memory that a worker on the same machine maps as well.
    pub fn is_shared_nearby(self) -> bool {
        matches!(self, Self::Pinned | Self::Mapped | Self::Elsewhere | Self::Managed)
    }

    /// Returns whether kernels can use such memory although no argument names it.
    pub fn is_known(self) -> bool {
        matches!(self, Self::Mapped | Self::Managed)
    }
}

/// What a worker tells of memory on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tells {
    /// Which pages have changed.
    Changes,
    /// Nothing: it does not have the feature.
    Nothing,
    /// Which pages have changed, until it has no memory to know it.
    ChangesForAWhile,
    /// Which pages have changed, with a bug: it clears a page's mark after it has read the page. No case has it unless a test sets it.
    ChangesClearedLate,
}

/// A word of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Index of the piece of memory.
    pub memory: usize,
    /// Index of the word.
    pub word: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.memory, self.word)
    }
}

/// What a thread waits for or queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// All work of this device.
    Device(i32),
    /// The work of a stream.
    Stream(usize),
    /// An event.
    Event(usize),
}

/// What a host function does, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// Reads a word.
    Read(Place),
    /// Writes a word.
    Write(Place),
    /// Opens a gate.
    Open(usize),
    /// Waits until a gate is open.
    Pass(usize),
}

/// An act of a thread: a call of HIP, or an access to memory. Streams, events, gates and graphs are named by their indices.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are what their types and the acts say")]
pub enum Act {
    /// Launches a kernel that reads one word and writes another. If it is not `named`, no argument has their addresses. One that `fails`
    /// does the same, and leaves an error.
    Launch { stream: usize, to: Place, from: Place, named: bool, fails: bool },
    /// Fills words: `hipMemsetD32` if it waits, else `hipMemsetD32Async`.
    Fill { stream: usize, to: Place, words: usize, waits: bool },
    /// Copies words: `hipMemcpyWithStream` if it waits, else `hipMemcpyAsync`.
    Copy { stream: usize, to: Place, from: Place, words: usize, waits: bool },
    /// Reads a word.
    Read(Place),
    /// Writes a word.
    Write(Place),
    /// Waits for work.
    Wait(Target),
    /// Queries whether work is done.
    Query(Target),
    /// Records an event.
    Record { event: usize, stream: usize },
    /// Makes a stream wait for an event.
    Await { event: usize, stream: usize },
    /// Puts a host function on a stream.
    Function { stream: usize, is_callback: bool, deeds: Vec<Deed> },
    /// Opens a gate.
    Open(usize),
    /// Destroys a stream.
    DestroyStream(usize),
    /// Creates the stream anew after it was destroyed.
    CreateStream(usize),
    /// Destroys an event.
    DestroyEvent(usize),
    /// Creates the event anew after it was destroyed.
    CreateEvent(usize),
    /// Begins to capture a stream.
    BeginCapture(usize),
    /// Ends the thread's capture and instantiates its graph as the thread's graph of this number.
    EndCapture(usize),
    /// Launches one of the thread's graphs.
    LaunchGraph { graph: usize, stream: usize },
    /// Destroys one of the thread's instantiated graphs.
    DestroyGraph(usize),
}

impl Act {
    /// Returns the stream that the act names, if it does.
    pub fn stream(&self) -> Option<usize> {
        match self {
            Self::Launch { stream, .. }
            | Self::Fill { stream, .. }
            | Self::Copy { stream, .. }
            | Self::Record { stream, .. }
            | Self::Await { stream, .. }
            | Self::Function { stream, .. }
            | Self::LaunchGraph { stream, .. }
            | Self::DestroyStream(stream)
            | Self::CreateStream(stream)
            | Self::BeginCapture(stream)
            | Self::Wait(Target::Stream(stream))
            | Self::Query(Target::Stream(stream)) => Some(*stream),
            _ => None,
        }
    }

    /// Returns the event that the act names, if it does.
    pub fn event(&self) -> Option<usize> {
        match self {
            Self::Record { event, .. }
            | Self::Await { event, .. }
            | Self::DestroyEvent(event)
            | Self::CreateEvent(event)
            | Self::Wait(Target::Event(event))
            | Self::Query(Target::Event(event)) => Some(*event),
            _ => None,
        }
    }
}

/// What worlds are like, drawn before their scripts so that they differ much from each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The streams. The first one is the legacy stream of device 0.
    pub streams: Vec<WorldStream>,
    /// The pieces of memory.
    pub memory: Vec<MemoryKind>,
    /// Number of events.
    pub events: usize,
    /// Number of gates.
    pub gates: usize,
    /// Number of acts that each thread is given at most.
    pub acts_max: usize,
    /// Whether threads use each other's words.
    pub shares_words: bool,
    /// Whether kernels fail.
    pub kernels_fail: bool,
    /// Whether the worker is slow, so that much is under way at a time.
    pub is_slow: bool,
    /// How often each group of acts is drawn: work, program, waits, events, functions, graphs, ends, chains.
    pub weights: [u64; 8],
    /// What the worker tells of memory on both sides.
    pub tells: Tells,
    /// Whether synchronizations pass over work that could show the program nothing.
    pub is_lazy: bool,
    /// Whether the worker is on the same machine, so that pinned and managed memory is one memory that both sides map.
    pub is_near: bool,
    /// Whether the worker tells when work is done of which a query found that it is not.
    pub has_watches: bool,
    /// Whether the operating system notes which pages the program writes.
    pub has_notes: bool,
    /// Whether the two devices are of different workers.
    pub are_apart: bool,
}

impl Options {
    fn draw(choices: &mut Choices<'_>) -> Self {
        let of_first = |kind| WorldStream { kind, device: 0 };
        let mut streams = vec![of_first(StreamKind::Legacy)];
        let kinds = [StreamKind::NonBlocking, StreamKind::Blocking, StreamKind::PerThread];
        for _ in 0..choices.between(1, 3) {
            let kind = choices.pick(&kinds).copied().unwrap_or(StreamKind::Blocking);
            if kind != StreamKind::PerThread || !streams.contains(&of_first(kind)) {
                streams.push(of_first(kind));
            }
        }
        let kinds = [
            MemoryKind::Device,
            MemoryKind::Pageable,
            MemoryKind::Mapped,
            MemoryKind::Managed,
            MemoryKind::Pinned,
            MemoryKind::Registered,
            MemoryKind::Elsewhere,
        ];
        let kernels_fail = choices.one_in(4);
        // HIP leaves open what memory on both sides has when a kernel has failed.
        let kinds = if kernels_fail { kinds.get(..2).unwrap_or_default() } else { &kinds };
        let count = choices.between(1, 4);
        let memory = (0..count).map(|_| choices.pick(kinds).copied().unwrap_or(MemoryKind::Mapped)).collect();
        let weights = [6, 6, 3, 2, 2, 1, 1, 3].map(|most| match choices.below(3) {
            0 => most,
            1 => 0,
            _ => most * 2,
        });
        Self {
            streams,
            memory,
            events: 2,
            gates: 3,
            acts_max: choices.pick(&[8, 4, 14, 20]).copied().unwrap_or(8),
            shares_words: choices.one_in(3),
            kernels_fail,
            is_slow: choices.one_in(2),
            weights,
            tells: Tells::Changes,
            is_lazy: false,
            is_near: false,
            has_watches: true,
            has_notes: true,
            are_apart: false,
        }
    }

    /// Gives some of the streams to another device, by these bits, and adds its legacy stream.
    fn add_device(&mut self, bits: u8) {
        for (place, stream) in self.streams.iter_mut().enumerate().skip(1) {
            stream.device = i32::from(bits >> (place % 8) & 1);
        }
        self.streams.push(WorldStream { kind: StreamKind::Legacy, device: 1 });
    }

    /// Returns whether there are several devices.
    pub fn has_several_devices(&self) -> bool {
        self.streams.iter().any(|stream| stream.device > 0)
    }

    /// Gives each device a worker of its own, and lets both have memory and events.
    fn set_apart(&mut self) {
        self.are_apart = true;
        // What needs one worker is not asked for then.
        (self.is_near, self.has_notes) = (false, false);
    }

    /// Returns the device that has a piece of memory, or for which it was allocated.
    pub fn device_of_memory(&self, memory: usize) -> i32 {
        if self.are_apart { (memory % 2) as i32 } else { 0 }
    }

    /// Returns the device for which an event is created.
    pub fn device_of_event(&self, event: usize) -> i32 {
        if self.are_apart { (event % 2) as i32 } else { 0 }
    }

    /// Returns whether memory is device memory of another worker than a stream's.
    pub fn is_far(&self, memory: usize, stream: usize) -> bool {
        self.are_apart
            && self.memory.get(memory) == Some(&MemoryKind::Device)
            && self.device_of_memory(memory) != self.device_of_stream(stream)
    }

    /// Returns the device of a stream.
    pub fn device_of_stream(&self, stream: usize) -> i32 {
        self.streams.get(stream).map_or(0, |stream| stream.device)
    }

    /// Returns the current device of a thread.
    pub fn device_of(&self, thread: usize) -> i32 {
        if self.has_several_devices() { (thread % 2) as i32 } else { 0 }
    }
}

/// The acts of the program's threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script(pub Vec<Vec<Act>>);

/// A world's options, script and schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// The options.
    pub options: Options,
    /// The script.
    pub script: Script,
    /// The decisions of who does the next step.
    pub schedule: Vec<u8>,
}

impl Case {
    /// Draws a case from bytes.
    pub fn draw(bytes: &[u8]) -> Self {
        // The script comes from the first part, so that it does not take all bytes from the schedule.
        let (first, schedule) = bytes.split_at(bytes.len() / 2);
        let mut choices = Choices::new(first);
        let mut options = Options::draw(&mut choices);
        options.tells = match schedule.last().map_or(0, |byte| byte % 4) {
            0 | 1 => Tells::Changes,
            2 => Tells::Nothing,
            _ => Tells::ChangesForAWhile,
        };
        options.is_lazy = schedule.first().is_some_and(|byte| byte % 4 == 0);
        options.is_near = schedule.get(1).is_some_and(|byte| byte % 8 == 1);
        options.has_watches = schedule.get(2).is_none_or(|byte| byte % 4 > 0);
        options.has_notes = schedule.get(3).is_none_or(|byte| byte % 4 > 0);
        if schedule.get(4).is_some_and(|byte| byte % 8 == 1) {
            options.add_device(schedule.get(5).copied().unwrap_or(0));
        }
        if schedule.get(4).is_some_and(|byte| byte % 8 == 2) {
            options.add_device(schedule.get(5).copied().unwrap_or(0));
            options.set_apart();
        }
        let threads = choices.between(1, 3) as usize;
        let script = (0..threads).map(|thread| draw_thread(&options, thread, &mut choices)).collect();
        Self { options, script: Script(script), schedule: schedule.to_vec() }
    }

    /// Draws the case of a seed.
    pub fn from_seed(seed: u64) -> Self {
        Self::draw(&seed_bytes(seed))
    }
}

fn draw_thread(options: &Options, thread: usize, choices: &mut Choices<'_>) -> Vec<Act> {
    let mut acts = Vec::new();
    let mut draw = Draw { options, thread, choices };
    let mut graphs = 0;
    while acts.len() < options.acts_max && !draw.choices.is_exhausted() {
        match draw.group() {
            5 => draw.graph(&mut acts, &mut graphs),
            7 => draw.chain(&mut acts),
            group => acts.extend(draw.act(group)),
        }
    }
    acts
}

struct Draw<'o, 'c, 'b> {
    options: &'o Options,
    thread: usize,
    choices: &'c mut Choices<'b>,
}

impl Draw<'_, '_, '_> {
    /// Returns the number of a group of acts, by their weights.
    fn group(&mut self) -> usize {
        let weights = self.options.weights;
        let mut left = self.choices.below(weights.iter().sum::<u64>().max(1));
        for (group, weight) in weights.iter().enumerate() {
            if left < *weight {
                return group;
            }
            left -= weight;
        }
        0
    }

    fn stream(&mut self) -> usize {
        self.choices.index(self.options.streams.len())
    }

    fn word(&mut self) -> usize {
        if self.options.shares_words { self.choices.index(WORDS) } else { self.thread.min(WORDS - 1) }
    }

    /// Draws a word of memory of a kind for which `is_fit` returns true.
    fn place(&mut self, is_fit: impl Fn(MemoryKind) -> bool) -> Option<Place> {
        self.place_of(|_, kind| is_fit(kind))
    }

    fn place_of(&mut self, is_fit: impl Fn(usize, MemoryKind) -> bool) -> Option<Place> {
        let all = self.options.memory.iter().enumerate();
        let fit: Vec<usize> = all.filter(|(at, kind)| is_fit(*at, **kind)).map(|(at, _)| at).collect();
        let memory = *self.choices.pick(&fit)?;
        Some(Place { memory, word: self.word() })
    }

    /// Draws a word that kernels of a stream can reach: not in memory of another worker.
    fn place_of_kernel(&mut self, stream: usize) -> Option<Place> {
        let options = self.options;
        self.place_of(|at, kind| kind.is_of_kernels() && !options.is_far(at, stream))
    }

    /// Draws an event that can be recorded on a stream.
    fn event_of(&mut self, stream: usize) -> usize {
        if self.options.are_apart {
            self.options.device_of_stream(stream) as usize
        } else {
            self.choices.index(self.options.events)
        }
    }

    /// Draws the number of words of a range that begins at both places.
    fn words(&mut self, to: Place, from: Place) -> usize {
        if self.options.shares_words { 1 + self.choices.index(WORDS - to.word.max(from.word)) } else { 1 }
    }

    fn kind(&self, place: Place) -> MemoryKind {
        self.options.memory.get(place.memory).copied().unwrap_or(MemoryKind::Pageable)
    }

    fn work(&mut self, stream: usize) -> Option<Act> {
        match self.choices.below(4) {
            0 | 1 => {
                let (to, from) = (self.place_of_kernel(stream)?, self.place_of_kernel(stream)?);
                let is_known = self.kind(to).is_known() && self.kind(from).is_known();
                let named = !is_known || self.choices.one_in(2);
                let fails = self.options.kernels_fail && self.choices.one_in(3);
                Some(Act::Launch { stream, to, from, named, fails })
            }
            2 => {
                let to = self.place(MemoryKind::is_of_kernels)?;
                Some(Act::Fill { stream, to, words: self.words(to, to), waits: false })
            }
            _ => {
                let (to, from) = (self.place(|_| true)?, self.place(|_| true)?);
                let is_same = to.memory == from.memory;
                let words = self.words(to, from);
                (!is_same).then_some(Act::Copy { stream, to, from, words, waits: false })
            }
        }
    }

    fn target(&mut self) -> Target {
        match self.choices.below(5) {
            0 => Target::Device(self.options.device_of(self.thread)),
            1 => Target::Event(self.choices.index(self.options.events)),
            _ => Target::Stream(self.stream()),
        }
    }

    fn deeds(&mut self) -> Vec<Deed> {
        let mut deeds = Vec::new();
        for _ in 0..self.choices.between(0, 3) {
            let deed = match self.choices.below(4) {
                0 => self.place(MemoryKind::is_of_host).map(Deed::Read),
                1 => self.place(MemoryKind::is_of_host).map(Deed::Write),
                2 => Some(Deed::Open(self.choices.index(self.options.gates))),
                _ => Some(Deed::Pass(self.choices.index(self.options.gates))),
            };
            deeds.extend(deed);
        }
        deeds
    }

    fn act(&mut self, group: usize) -> Option<Act> {
        match group {
            0 => {
                let stream = self.stream();
                match self.work(stream)? {
                    Act::Fill { to, words, .. } if stream == 0 => {
                        Some(Act::Fill { stream, to, words, waits: self.choices.one_in(2) })
                    }
                    Act::Copy { to, from, words, .. } => {
                        Some(Act::Copy { stream, to, from, words, waits: self.choices.one_in(2) })
                    }
                    act => Some(act),
                }
            }
            1 => {
                let place = self.place(MemoryKind::is_of_host)?;
                Some(if self.choices.one_in(2) { Act::Write(place) } else { Act::Read(place) })
            }
            2 => {
                let target = self.target();
                let is_query = self.choices.one_in(3) && !matches!(target, Target::Device(_));
                Some(if is_query { Act::Query(target) } else { Act::Wait(target) })
            }
            3 => {
                let (event, stream) = (self.choices.index(self.options.events), self.stream());
                Some(if self.choices.one_in(2) {
                    let event = if self.options.are_apart { self.event_of(stream) } else { event };
                    Act::Record { event, stream }
                } else {
                    Act::Await { event, stream }
                })
            }
            4 => {
                if self.choices.one_in(3) {
                    return Some(Act::Open(self.choices.index(self.options.gates)));
                }
                let (stream, is_callback) = (self.stream(), self.choices.one_in(4));
                Some(Act::Function { stream, is_callback, deeds: self.deeds() })
            }
            _ => {
                let stream = self.stream();
                let event = self.choices.index(self.options.events);
                Some(match self.choices.below(4) {
                    0 => Act::DestroyStream(stream),
                    1 => Act::CreateStream(stream),
                    2 => Act::DestroyEvent(event),
                    _ => Act::CreateEvent(event),
                })
            }
        }
    }

    /// Draws work on a stream, something that work of another stream comes behind, that work, and a wait for it.
    fn chain(&mut self, acts: &mut Vec<Act>) {
        let (first, second) = (self.stream(), self.stream());
        acts.extend(self.work(first));
        match self.choices.below(3) {
            0 => {
                let event = self.event_of(first);
                acts.extend([Act::Record { event, stream: first }, Act::Await { event, stream: second }]);
            }
            1 => {
                let to = self.place(|kind| !kind.is_of_host());
                let from = self.place(|kind| kind.is_of_kernels() && kind.is_of_host());
                let copy = to.zip(from);
                acts.extend(copy.map(|(to, from)| Act::Copy {
                    stream: first,
                    to,
                    from,
                    words: 1,
                    waits: true,
                }));
            }
            _ => {
                let to = self.place(|kind| kind.is_of_kernels() && kind.is_of_host());
                acts.extend(to.map(|to| Act::Fill { stream: 0, to, words: 1, waits: false }));
            }
        }
        acts.extend(self.work(second));
        if self.choices.one_in(2) {
            acts.push(Act::Wait(Target::Stream(second)));
        }
    }

    /// Draws a capture with its acts, or the launch of a graph.
    fn graph(&mut self, acts: &mut Vec<Act>, graphs: &mut usize) {
        let stream = self.stream();
        if *graphs > 0 && self.choices.below(4) > 0 {
            let graph = self.choices.index(*graphs);
            acts.push(if self.choices.one_in(8) {
                Act::DestroyGraph(graph)
            } else {
                Act::LaunchGraph { graph, stream }
            });
            return;
        }
        acts.push(Act::BeginCapture(stream));
        for _ in 0..self.choices.between(1, 4) {
            if self.choices.one_in(5) {
                let deeds = self.deeds();
                acts.push(Act::Function { stream, is_callback: false, deeds });
            } else {
                acts.extend(self.work(stream));
            }
        }
        acts.push(Act::EndCapture(*graphs));
        *graphs += 1;
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options {
            streams,
            memory,
            acts_max,
            shares_words,
            kernels_fail,
            weights,
            tells,
            is_lazy,
            is_near,
            has_watches,
            has_notes,
            are_apart,
            ..
        } = &self.options;
        writeln!(f, "options:")?;
        writeln!(f, "  the worker      tells {tells:?} of memory on both sides")?;
        writeln!(f, "  synchronizing   {}", if *is_lazy { "lazily" } else { "strictly" })?;
        writeln!(
            f,
            "  pinned memory   {}",
            if *is_near { "is mapped by both sides" } else { "exists twice" }
        )?;
        writeln!(f, "  ends of work    {}", if *has_watches { "are told" } else { "are asked for" })?;
        writeln!(f, "  workers         {}", if *are_apart { "one for each device" } else { "one" })?;
        writeln!(f, "  streams         {streams:?}")?;
        writeln!(f, "  memory          {memory:?}")?;
        writeln!(f, "  written pages   {}", if *has_notes { "are noted" } else { "are compared" })?;
        writeln!(
            f,
            "  acts            up to {acts_max} a thread, by weights {weights:?}, shared words: {shares_words}, kernels \
             fail: {kernels_fail}"
        )?;
        writeln!(f, "\nscript, {} bytes of schedule:", self.schedule.len())?;
        for (thread, acts) in self.script.0.iter().enumerate() {
            for (index, act) in acts.iter().enumerate() {
                writeln!(f, "  thread {thread}, act {index}: {act:?}")?;
            }
        }
        Ok(())
    }
}
