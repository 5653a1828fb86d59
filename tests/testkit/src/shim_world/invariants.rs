//! The invariants of the shim world, which judge a trace against the model.

use super::model::{Items, Model};
use super::script::{Place, Target};
use super::trace::{Ask, By, Event, Item, ItemKind, Outcome, Trace};
use crate::invariants::Violation;

/// The invariants: their names, and what they say.
pub const INVARIANTS: &[(&str, &str)] = &[
    ("work_sees_what_the_program_wrote", "work on a stream sees what the program wrote before it"),
    ("waits_bring_what_work_wrote", "after a wait the program sees what the work before it wrote"),
    ("no_write_of_the_program_is_lost", "no bytes of the program are lost or replaced by old ones"),
    ("work_is_done_in_order", "work is done behind what HIP puts before it, and sees what that wrote"),
    ("work_is_done_once", "all work is done once, and nothing that was captured or refused"),
    (
        "functions_run_once_and_in_order",
        "a host function runs once, behind what is before it and before what is behind it",
    ),
    (
        "waits_end_when_work_is_over",
        "a wait, or a query that says done, returns when the work is over that could still show something, and not before",
    ),
    ("waits_tell_errors", "a wait that succeeds leaves no error of its streams' earlier work untold"),
    (
        "queries_do_not_say_not_ready_for_ever",
        "a query says not ready only while there is something that it asks for",
    ),
    (
        "queries_know_what_was_told",
        "a query that asks nobody says not ready only while it is so, or the worker has yet to tell",
    ),
    (
        "no_call_waits_for_what_hip_does_not",
        "no call waits for a host function that HIP does not let it wait for",
    ),
    ("nothing_hangs", "every call, host function and piece of work ends when all that it waits for has"),
    ("what_ended_is_forgotten", "nothing is left of streams, events and graphs that ended"),
    ("nothing_panics", "nothing panics"),
];

/// Judges a trace: returns the violations, none if all invariants hold.
pub fn violations(trace: &Trace) -> Vec<Violation> {
    let mut judge = Judge { model: Model::new(trace), stale: [0; 8], found: Vec::new() };
    trace.events.iter().for_each(|event| judge.judge(event));
    judge.end();
    judge.found
}

/// How often in a row a thread may be told that something is not ready when all is done: what the worker tells may be heard late.
const STALE_MAX: usize = 10;

struct Judge<'t> {
    model: Model<'t>,
    /// For each thread, how often it was told in a row that something is not ready when all was done.
    stale: [usize; 8],
    found: Vec<Violation>,
}

impl Judge<'_> {
    fn say(&mut self, invariant: &'static str, what: String) {
        self.found.push(Violation { invariant, call: None, what });
    }

    fn name(&self, item: usize) -> String {
        let name = self.model.trace.items.get(item).map_or("nothing", |item| item.name.as_str());
        format!("item {item} ({name})")
    }

    fn is(&self, item: usize, kind: ItemKind) -> bool {
        self.model.trace.items.get(item).is_some_and(|item| item.kind == kind)
    }

    /// Returns the first item of a set that is not done and can still show something, if there is one.
    fn open(&self, set: &Items) -> Option<usize> {
        self.all_open(set).next()
    }

    fn all_open(&self, set: &Items) -> impl Iterator<Item = usize> {
        let is_decided = |item: &usize| self.model.trace.items.get(*item).is_some_and(|item| item.is_decided);
        self.all_not_done(set).filter(move |item| !is_decided(item))
    }

    fn all_not_done(&self, set: &Items) -> impl Iterator<Item = usize> {
        set.iter().filter(|item| {
            let state = self.model.items.get(*item);
            !self.is(*item, ItemKind::Write)
                && state.is_some_and(|state| !state.is_done && !state.is_sent && !state.has_failed)
        })
    }

    fn judge(&mut self, event: &Event) {
        match event {
            Event::Executed { item, reads, by, .. } => self.executed(*item, reads, *by),
            Event::FunctionBegan { item } => {
                let state = self.model.items.get(*item);
                if state.is_some_and(|state| state.has_begun) {
                    self.say("functions_run_once_and_in_order", format!("{} runs again", self.name(*item)));
                }
                self.in_order(*item, By::Process);
            }
            Event::Read { who, place, value } => {
                let before = self.model.before(*who);
                self.read(None, *place, *value, &before, &format!("{who:?}"));
            }
            Event::Unasked { what } => self.say("work_is_done_once", format!("nobody asked for {what}")),
            Event::Ended { thread, outcome, is_idle } => self.ended(*thread, *outcome, *is_idle),
            Event::Answered { thread } => self.answered(*thread),
            Event::Waits { thread } => self.waits(*thread),
            Event::Stale { thread } => {
                let ask =
                    self.model.current.get(*thread).and_then(Option::as_ref).map(|current| &current.ask);
                let what =
                    format!("thread {thread} is told without asking that {ask:?} is not ready, and it is");
                self.say("queries_know_what_was_told", what);
            }
            Event::Still { waiting, at_gate } => self.still(waiting, *at_gate),
            Event::Began { .. } | Event::FunctionEnded { .. } | Event::Wrote { .. } => {}
            Event::Opened { .. } | Event::Passed { .. } => {}
            Event::Refused { .. } | Event::Erred { .. } | Event::Told { .. } | Event::Sent { .. } => {}
        }
        self.model.apply(event);
    }

    /// Returns whether an item has left an error which a wait has to tell, and nobody was told it.
    fn is_untold(&self, item: usize, target: Target) -> bool {
        let Some(Item { stream, beside, .. }) = self.model.trace.items.get(item) else { return false };
        self.model.items.get(item).is_some_and(|state| state.has_error)
            && match beside {
                Some(device) => target == Target::Device(*device),
                None => stream.is_some_and(|stream| self.model.tells_of(target, stream)),
            }
    }

    /// Returns whether an item only writes to memory of another worker what was known when it was sent: whoever looks at that memory comes
    /// behind it, and nobody can see that the other item does not.
    fn is_decided_elsewhere(&self, item: usize, other: usize) -> bool {
        let all = &self.model.trace.items;
        let worker = |item: usize| Some(self.model.worker_of(all.get(item)?.stream?));
        all.get(item).is_some_and(|item| item.is_decided) && worker(item) != worker(other)
    }

    fn in_order(&mut self, item: usize, by: By) {
        let before = self.model.before_item(item);
        let stream = |item: usize| self.model.trace.items.get(item).and_then(|item| item.stream);
        let first = match by {
            By::Worker => self.all_not_done(&before).find(|other| !self.is_decided_elsewhere(*other, item)),
            By::Across => self.open(&before),
            // It sees what the program sees.
            _ if self.is(item, ItemKind::Function) => self.open(&before),
            // The program sees it, which need not have waited for what its own calls have come behind.
            _ => self.all_open(&before).find(|other| stream(*other) == stream(item)),
        };
        if let Some(first) = first {
            let is_function = self.is(item, ItemKind::Function) || self.is(first, ItemKind::Function);
            let invariant =
                if is_function { "functions_run_once_and_in_order" } else { "work_is_done_in_order" };
            let what = format!("{} is executed although {} is before it", self.name(item), self.name(first));
            self.say(invariant, what);
        }
    }

    fn executed(&mut self, item: usize, reads: &[(Place, u32)], by: By) {
        if self.model.items.get(item).is_some_and(|state| state.is_done || state.has_failed) {
            self.say("work_is_done_once", format!("{} is executed again, or was refused", self.name(item)));
        }
        if by != By::Call {
            self.in_order(item, by);
        }
        let before = self.model.before_item(item);
        let name = self.name(item);
        for (place, value) in reads {
            self.read(Some(item), *place, *value, &before, &name);
        }
    }

    /// Judges what a reader found in a word.
    fn read(&mut self, reader: Option<usize>, place: Place, value: u32, before: &Items, name: &str) {
        let visible = self.model.visible(place, before, reader);
        let wrote = |item: &usize| {
            let state = self.model.items.get(*item);
            state.is_some_and(|state| {
                state.wrote.iter().any(|(other, wrote)| *other == place && *wrote == value)
            })
        };
        if visible.iter().any(wrote) {
            return;
        }
        // Where writes race, any mixture may be there; but nothing that was overwritten.
        let writers = self.model.writers.iter().find(|(other, _)| *other == place);
        let old = writers.and_then(|(_, writers)| {
            writers.iter().copied().find(|item| !visible.contains(item) && wrote(item))
        });
        if visible.len() > 1 && old.is_none() {
            return;
        }
        let expected = visible.last().copied();
        let by_program = expected.is_some_and(|item| self.is(item, ItemKind::Write));
        let invariant = match (reader.is_some(), by_program) {
            (true, true) => "work_sees_what_the_program_wrote",
            (true, false) => "work_is_done_in_order",
            (false, true) => "no_write_of_the_program_is_lost",
            (false, false) => "waits_bring_what_work_wrote",
        };
        let found = old.map_or_else(|| "what nobody wrote".to_owned(), |item| self.name(item));
        let right: Vec<String> = visible.iter().map(|item| self.name(*item)).collect();
        self.say(
            invariant,
            format!("{name} finds in {place} {value:#x}, {found}, instead of {}", right.join(" or ")),
        );
    }

    fn ended(&mut self, thread: usize, outcome: Outcome, is_idle: bool) {
        let Some(Some(current)) = self.model.current.get(thread) else { return };
        let current = current.clone();
        let (target, is_query) = match &current.ask {
            Ask::Wait(target) => (*target, false),
            Ask::Query(target) => (*target, true),
            _ => return,
        };
        match outcome {
            Outcome::Ok => {
                let before = self.model.close(&current.before.min);
                if let Some(item) = self.open(&before) {
                    let what = format!("{target:?} counts as done, but {} is not", self.name(item));
                    self.say("waits_end_when_work_is_over", what);
                }
                if !is_query && !self.model.trace.is_lazy {
                    self.told(target, &before);
                }
            }
            Outcome::NotReady if is_query => {
                let is_stale = is_idle && current.was_done && current.puts == self.model.puts;
                let Some(stale) = self.stale.get_mut(thread) else { return };
                *stale = if is_stale { *stale + 1 } else { 0 };
                // What the worker tells may be heard after the answer was decided; the next one has to know it.
                if *stale > STALE_MAX {
                    let what =
                        format!("thread {thread} is told that {target:?} is not ready, and all is done");
                    self.say("queries_do_not_say_not_ready_for_ever", what);
                }
                return;
            }
            Outcome::NotReady | Outcome::Error(_) => {}
        }
        if let Some(stale) = self.stale.get_mut(thread) {
            *stale = 0;
        }
    }

    /// Judges what the worker's success says, whether waits are lazy or not.
    fn answered(&mut self, thread: usize) {
        let Some(Some(current)) = self.model.current.get(thread) else { return };
        if let Ask::Wait(target) = current.ask {
            let before = self.model.close(&current.before.min);
            self.told(target, &before);
        }
    }

    /// Judges a wait that has succeeded, and what was before it.
    fn told(&mut self, target: Target, before: &Items) {
        if let Some(item) = before.iter().find(|item| self.is_untold(*item, target)) {
            let what =
                format!("{target:?} counts as good, but nobody was told that {} failed", self.name(item));
            self.say("waits_tell_errors", what);
        }
    }

    fn waits(&mut self, thread: usize) {
        let Some(Some(current)) = self.model.current.get(thread) else { return };
        let may_wait = match &current.ask {
            Ask::Work { may_wait, .. } => *may_wait,
            Ask::Wait(_) => true,
            _ => false,
        };
        if !may_wait {
            let what = format!("thread {thread} waits for host functions: {:?}", current.ask);
            self.say("no_call_waits_for_what_hip_does_not", what);
        }
    }

    fn still(&mut self, waiting: &[usize], at_gate: bool) {
        for thread in waiting {
            let Some(Some(current)) = self.model.current.get(*thread) else { continue };
            let ask = current.ask.clone();
            let waits_for = self.model.may_wait_for(&ask);
            if self.model.are_done(&waits_for) {
                let invariant = if at_gate { "no_call_waits_for_what_hip_does_not" } else { "nothing_hangs" };
                self.say(invariant, format!("thread {thread} waits, although all is done: {ask:?}"));
            }
        }
        let stuck: Vec<usize> = (0..self.model.items.len())
            .filter(|item| {
                let Some(state) = self.model.items.get(*item) else { return false };
                let is_asked = state.has_returned && !state.has_failed && !state.is_done && !state.has_begun;
                is_asked && self.model.are_done(&state.before.max)
            })
            .collect();
        for item in stuck {
            self.say(
                "nothing_hangs",
                format!("{} does not begin, although all before it is over", self.name(item)),
            );
        }
    }

    fn end(&mut self) {
        for thread in 0..self.model.current.len() {
            if let Some(Some(current)) = self.model.current.get(thread) {
                let what = format!("thread {thread} never returns from {:?}", current.ask);
                self.say("nothing_hangs", what);
            }
        }
        let open: Vec<usize> = (0..self.model.items.len())
            .filter(|item| {
                let state = self.model.items.get(*item);
                state.is_some_and(|state| state.has_returned && !state.has_failed && !state.is_done)
            })
            .collect();
        for item in open {
            let invariant = if self.is(item, ItemKind::Function) {
                "functions_run_once_and_in_order"
            } else {
                "work_is_done_once"
            };
            self.say(invariant, format!("{} is never over", self.name(item)));
        }
        for what in &self.model.trace.left {
            self.found.push(Violation {
                invariant: "what_ended_is_forgotten",
                call: None,
                what: what.clone(),
            });
        }
        if let Some(what) = &self.model.trace.panic {
            self.found.push(Violation { invariant: "nothing_panics", call: None, what: what.clone() });
        }
    }
}
