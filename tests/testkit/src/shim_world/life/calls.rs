//! The threads of a shim world inside calls: they do one phase after the other, wait for functions and the worker, and execute the
//! steps of host functions.

use std::collections::VecDeque;

use amdhip64::command::{Command, HostFunction, MemoryFill, Pattern};
use amdhip64::stream::host_functions::Next as QueueNext;
use amdhip64::stream::mirror::Place as MemoryPlace;
use amdhip64::stream::order::LEGACY;
use amdhip64::stream::{Call, Next, WaitCall};
use amdhip64::worker::{Port, Wait};
use hipr_proto::{HipError, HipResult};

use super::{Doing, Life, Part, Runner, Running, Thread};
use crate::shim_world::machine::FILLS;
use crate::shim_world::script::Deed;
use crate::shim_world::trace::{Event, Who};

impl Life<'_> {
    pub(super) fn step_queue(&mut self, index: usize) -> bool {
        let Some((runner, running)) = self.queues.get_mut(index) else { return false };
        let who = runner.who;
        let Thread::Queue(queue) = who else { return false };
        let Some(Running { number, command, item }) = running else {
            return match self.streams.host_functions.next(queue) {
                QueueNext::Run(step) => {
                    let command = number_of(&step.command);
                    *running = Some(Running { number: step.number, command, item: None });
                    (runner.stream, runner.doing) = (step.stream, Doing::Phase);
                    let call = Call::held(step.number, step.command, step.stream);
                    runner.parts = VecDeque::from([Part::Call(Box::new(call))]);
                    true
                }
                QueueNext::Wait => false,
                QueueNext::End => {
                    self.queues.remove(index);
                    true
                }
            };
        };
        let (number, command, mut item) = (*number, *command, *item);
        let mut taken = std::mem::replace(runner, Runner::new(who));
        let (moved, ended) = self.drive(&mut taken);
        if let Doing::Deeds(function, ..) = &taken.doing {
            item = Some(*function);
        }
        let is_over = ended.is_some();
        if let Some(result) = ended {
            if let Some(item) = item {
                self.note(Event::FunctionEnded { item });
            }
            if result.is_err() && self.case.options.kernels_fail {
                // What it waited for has failed: it has been told so, and does nothing.
                self.machine.0.borrow_mut().refuse(command, taken.stream);
            }
            self.streams.host_functions.finished(number, result);
        }
        if let Some((runner, running)) = self.queues.get_mut(index) {
            *runner = taken;
            *running = (!is_over).then_some(Running { number, command, item });
        }
        moved
    }

    /// Passes on what the worker has told of watches.
    fn hear(&self) {
        let told = self.machine.0.borrow_mut().take_told();
        told.into_iter().for_each(|number| self.streams.watch_is_over(number, None));
    }

    /// Lets a thread do its next step inside a call. Returns whether it did, and the call's result if it has ended.
    pub(super) fn drive(&mut self, runner: &mut Runner) -> (bool, Option<HipResult<()>>) {
        self.machine.0.borrow_mut().haste =
            if self.choices.is_exhausted() { 0 } else { self.choices.below(256) };
        self.beats += 1;
        if self.beats.is_multiple_of(3) || self.choices.is_exhausted() {
            self.machine.0.borrow_mut().tell_watched();
            self.hear();
        }
        match std::mem::replace(&mut runner.doing, Doing::Phase) {
            Doing::Phase => (true, self.phase(runner)),
            Doing::Steps(steps) => {
                let are_over = self.streams.host_functions.are_over(&steps);
                if !are_over {
                    runner.doing = Doing::Steps(steps);
                }
                (are_over, None)
            }
            Doing::Ask(wait) => {
                if let Thread::Program(thread) = runner.who
                    && let Some((_, progress)) = self.programs.get_mut(thread)
                {
                    progress.query = None;
                }
                let mut state = self.machine.0.borrow_mut();
                runner.doing = if wait.is_query() {
                    Doing::Answer(Vec::new(), state.query(wait), None)
                } else {
                    Doing::Answer(state.awaited(wait), Ok(()), Some(wait))
                };
                (true, None)
            }
            Doing::Await(event) => {
                // Now and then it is asked too early.
                let asks_anyway = !self.choices.is_exhausted() && self.choices.below(4) == 0;
                if !asks_anyway && !self.machine.0.borrow().awaited(Wait::QueryEvent(event)).is_empty() {
                    runner.doing = Doing::Await(event);
                    return (false, None);
                }
                runner.parts.push_front(Part::Await(event, WaitCall::of_library(event)));
                (true, None)
            }
            Doing::AskBytes(transfer) => {
                let command = self.machine.0.borrow_mut().receive(&transfer);
                runner.doing = Doing::Answer(command.into_iter().collect(), Ok(()), None);
                (true, None)
            }
            Doing::Question(question) => {
                let mut state = self.machine.0.borrow_mut();
                let (is_answered, wait) = state.is_answered(question);
                if !is_answered {
                    runner.doing = Doing::Question(question);
                    return (false, None);
                }
                let has_failed = wait.is_some_and(|wait| state.tell_errors(wait));
                state.tell_watched();
                drop(state);
                self.hear();
                if let (Thread::Program(thread), Some(_), false) = (runner.who, wait, has_failed) {
                    self.note(Event::Answered { thread });
                }
                let (answer, answers) = self.machine.answers(question);
                self.streams.mirrors.answered(self.machine, question, answers);
                resume(runner, if has_failed { Err(HipError::LAUNCH_FAILURE) } else { answer });
                (true, None)
            }
            Doing::Applied(question) => {
                let is_applied = self.streams.mirrors.is_answered(question);
                if !is_applied {
                    runner.doing = Doing::Applied(question);
                }
                (is_applied, None)
            }
            Doing::Answer(commands, mut result, wait) => {
                let mut state = self.machine.0.borrow_mut();
                if !state.are_done(&commands) {
                    runner.doing = Doing::Answer(commands, result, wait);
                    return (false, None);
                }
                if wait.is_some() {
                    // Answers to queries were given before.
                    state.tell_watched();
                }
                if state.was_refused(&commands) || wait.is_some_and(|wait| state.tell_errors(wait)) {
                    result = Err(HipError::LAUNCH_FAILURE);
                }
                drop(state);
                self.hear();
                if let (Thread::Program(thread), Some(_), Ok(())) = (runner.who, wait, result) {
                    self.note(Event::Answered { thread });
                }
                resume(runner, result);
                (true, None)
            }
            Doing::Deeds(item, mut deeds, result) => {
                let who = Who::Function(item);
                match deeds.front().copied() {
                    Some(Deed::Pass(gate)) => {
                        if !self.gates.get(gate).copied().unwrap_or(true) {
                            runner.doing = Doing::Deeds(item, deeds, result);
                            return (false, None);
                        }
                        self.note(Event::Passed { item, gate });
                    }
                    Some(Deed::Read(place)) => self.read(who, place),
                    Some(Deed::Write(place)) => self.write(who, place),
                    Some(Deed::Open(gate)) => self.open(Some(who), gate),
                    None => {
                        if let Some(Part::Call(call)) = runner.parts.front_mut() {
                            call.resume(result);
                        }
                        return (true, None);
                    }
                }
                deeds.pop_front();
                runner.doing = Doing::Deeds(item, deeds, result);
                (true, None)
            }
        }
    }

    /// Executes the next phase of a call; returns the result if the call has ended.
    pub(super) fn phase(&mut self, runner: &mut Runner) -> Option<HipResult<()>> {
        self.machine.0.borrow_mut().next_step(runner.stream);
        let racer = self.let_race(runner.who);
        let caller = self.caller(runner.who);
        let next = match runner.parts.front_mut() {
            Some(Part::Call(call)) => Some(call.next(&self.streams, &caller)),
            Some(Part::Wait(call) | Part::Await(_, call)) => Some(call.next(&self.streams, &caller)),
            _ => None,
        };
        if let Some(racer) = racer {
            self.end_race(racer);
        }
        let caller = self.caller(runner.who);
        let next = match (next, runner.parts.front_mut()) {
            (_, None) => return Some(Ok(())),
            (Some(next), _) => next,
            (None, Some(Part::Call(_) | Part::Wait(_) | Part::Await(..))) => Next::Continue,
            (None, Some(Part::Finish(dst, has_waited))) => {
                let (dst, has_waited) = (*dst, *has_waited);
                runner.parts.pop_front();
                match self.streams.mirrors.place(caller.port, dst, 0, Some(true)) {
                    Ok(MemoryPlace::Mirrored(_) | MemoryPlace::Shared(_) | MemoryPlace::Host)
                        if !has_waited =>
                    {
                        runner.parts.push_front(Part::Finish(dst, true));
                        runner.parts.push_front(Part::Wait(WaitCall::functions(LEGACY)));
                    }
                    Ok(MemoryPlace::Mirrored(_) | MemoryPlace::Shared(_)) => {
                        runner.parts.push_front(Part::Wait(WaitCall::end_of_call(LEGACY)));
                    }
                    _ => {}
                }
                return None;
            }
        };
        if let (Next::Done(result), Some(Part::Await(event, _))) = (&next, runner.parts.front()) {
            let (result, event) = (*result, *event);
            runner.parts.pop_front();
            match result {
                Err(HipError::NOT_READY) => runner.doing = Doing::Await(event),
                result => resume(runner, result),
            }
            return None;
        }
        match next {
            Next::Continue => {}
            Next::WaitForSteps(steps) => {
                if !self.streams.host_functions.are_over(&steps) {
                    if let Thread::Program(thread) = runner.who {
                        self.note(Event::Waits { thread });
                    }
                    runner.doing = Doing::Steps(steps);
                }
            }
            Next::Wait(wait) => runner.doing = Doing::Ask(wait),
            Next::Answer(question) => runner.doing = Doing::Question(question),
            Next::WaitForAnswers(question) => runner.doing = Doing::Applied(question),
            Next::Receive(transfer) => runner.doing = Doing::AskBytes(transfer),
            Next::CallHost(HostFunction::Await(event), Ok(())) => runner.doing = Doing::Await(event),
            Next::CallHost(function, result) => {
                let (id, result) = match function {
                    HostFunction::Plain(_, data) => (data.0, result),
                    HostFunction::Callback(_, _, data) => (data.0, Ok(())),
                    HostFunction::Value(op) => (op.place().0.0, result),
                    // It is always to be called.
                    HostFunction::Await(event) => (event.wire() as usize, result),
                };
                let mut state = self.machine.0.borrow_mut();
                let expected =
                    state.expected.iter().position(|(of, on, _)| (*of, *on) == (id, runner.stream));
                match expected {
                    Some(at) => {
                        let item = state.expected.remove(at).2;
                        state.note(Event::FunctionBegan { item });
                        let deeds = self.functions.iter().find(|(of, _)| *of == id);
                        let deeds = deeds.map(|(_, deeds)| deeds.iter().copied().collect());
                        runner.doing = Doing::Deeds(item, deeds.unwrap_or_default(), result);
                    }
                    None => state.note(Event::Unasked { what: format!("the host function {id}") }),
                }
            }
            Next::Done(Ok(())) => {
                runner.parts.pop_front();
                return runner.parts.is_empty().then_some(Ok(()));
            }
            Next::Done(Err(error)) => return Some(Err(error)),
        }
        None
    }
}

/// Returns the number of the script's command that a copy or a fill is.
fn number_of(command: &Command) -> Option<usize> {
    match command {
        Command::Copy(copy) => Some(copy.dst.rows),
        Command::Fill(MemoryFill { pattern: Pattern::Word(value), .. }) => {
            Some(value.wrapping_sub(FILLS) as usize)
        }
        _ => None,
    }
}

/// Passes the worker's answer to the call of a thread.
fn resume(runner: &mut Runner, result: HipResult<()>) {
    match runner.parts.front_mut() {
        Some(Part::Call(call)) => call.resume(result),
        Some(Part::Wait(call) | Part::Await(_, call)) => call.resume(result),
        _ => {}
    }
}
