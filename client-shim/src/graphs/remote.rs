//! Ready graphs that the worker has too.
//!
//! A graph that is launched again as it was the last time is given to the worker: what its nodes ask for, recorded there instead of
//! done, and from then on launched with one message. Nodes that need this process (copies from and to its memory, its functions) or
//! its knowledge of events stay here; they divide a graph into parts. A graph that is changed is given anew only when it is
//! launched twice as it is then: three round trips are worth it for what comes again and again.

use std::ops::Range;
use std::sync::Arc;

use hipr_graph::Exec;
use hipr_proto::{HipResult, op};

use super::Task;
use crate::body::launch::Encoded;
use crate::callbacks::{Role, Work};
use crate::session::Session;

/// Nodes that are worth a graph of the worker's.
const PART_MIN: usize = 2;
/// `hipStreamNonBlocking`: what others do on the null stream does not matter to the recording.
const NON_BLOCKING: u32 = 1;
/// `hipStreamCaptureModeRelaxed`: nor does what they do elsewhere.
const RELAXED: i32 = 2;

/// What the worker has of a ready graph.
#[derive(Debug)]
pub(crate) struct Remote {
    parts: Vec<Part>,
}

/// Steps of a ready graph.
#[derive(Debug)]
struct Part {
    steps: Range<usize>,
    there: Option<There>,
}

/// The same on the worker.
#[derive(Debug)]
struct There {
    exec: u64,
    /// The arguments of the kernels, in order. Host memory can have another address on the device at another time.
    arguments: Vec<Encoded>,
}

/// The work of some steps.
fn tasks(exec: &Exec<Task>, steps: &Range<usize>) -> impl Iterator<Item = Task> {
    let steps = exec.steps().get(steps.clone()).unwrap_or_default();
    steps.iter().filter_map(|step| step.work()).cloned()
}

/// Cuts a graph into parts that the worker can have and parts that it cannot; the first of each pair says which.
fn cut(session: &Session, exec: &Exec<Task>) -> HipResult<Vec<(bool, Range<usize>)>> {
    let mut parts: Vec<(bool, Range<usize>)> = Vec::new();
    for (at, step) in exec.steps().iter().enumerate() {
        let goes = match step.work() {
            Some(task) => task.needs_only_the_worker(session)?,
            // Nothing, wherever it is.
            None => parts.last().is_some_and(|(goes, _)| *goes),
        };
        match parts.last_mut() {
            Some((last, steps)) if *last == goes => steps.end = at + 1,
            _ => parts.push((goes, at..at + 1)),
        }
    }
    Ok(parts)
}

impl Remote {
    /// Gives a graph to the worker, through `recorder`, a stream for nothing else. `stream` is the one that it will be launched on.
    /// `None`: there is nothing that the worker could do of itself.
    ///
    /// # Errors
    /// What the worker says; it has nothing then.
    pub(crate) fn give(
        session: &Session,
        exec: &Exec<Task>,
        recorder: u64,
        stream: u64,
    ) -> HipResult<Option<Self>> {
        let mut remote = Self { parts: Vec::new() };
        for (goes, steps) in cut(session, exec)? {
            let mut there = None;
            if goes && tasks(exec, &steps).count() >= PART_MIN {
                match There::give(session, exec, &steps, recorder, stream) {
                    Ok(given) => there = Some(given),
                    Err(error) => {
                        remote.release(session)?;
                        return Err(error);
                    }
                }
            }
            remote.parts.push(Part { steps, there });
        }
        Ok(remote.parts.iter().any(|part| part.there.is_some()).then_some(remote))
    }

    /// Launches it: a message for each part that the worker has.
    ///
    /// # Errors
    /// Those of the nodes.
    pub(crate) fn launch(
        self: &Arc<Self>,
        session: &Session,
        exec: &Arc<Exec<Task>>,
        stream: u64,
    ) -> HipResult<()> {
        for (at, Part { steps, there }) in self.parts.iter().enumerate() {
            if there.is_none() {
                tasks(exec, steps).try_for_each(|task| task.enqueue(session, stream))?;
                continue;
            }
            let later = || -> Work {
                let (remote, exec) = (Arc::clone(self), Arc::clone(exec));
                Box::new(move |session| remote.launch_part(session, &exec, at, stream))
            };
            if !session.callbacks().hold(session, stream, Role::Records(&[]), later)? {
                self.launch_part(session, exec, at, stream)?;
            }
        }
        Ok(())
    }

    /// Launches a part that the worker has.
    fn launch_part(&self, session: &Session, exec: &Exec<Task>, at: usize, stream: u64) -> HipResult<()> {
        let Some(Part { steps, there: Some(there) }) = self.parts.get(at) else { return Ok(()) };
        if there.holds(session, exec, steps, stream)? {
            session.tell(&op::GraphLaunch { graph_exec: there.exec, stream })?;
            session.mirrors().sent(stream);
            Ok(())
        } else {
            tasks(exec, steps).try_for_each(|task| task.enqueue_now(session, stream))
        }
    }

    /// The worker needs it no more.
    ///
    /// # Errors
    /// A lost connection.
    pub(crate) fn release(&self, session: &Session) -> HipResult<()> {
        let there = self.parts.iter().filter_map(|part| part.there.as_ref());
        there.map(|there| there.exec).try_for_each(|graph_exec| {
            let release = move |session: &Session| session.tell(&op::GraphExecDestroy { graph_exec });
            session.callbacks().after_all(session, release)
        })
    }
}

impl There {
    fn give(
        session: &Session,
        exec: &Exec<Task>,
        steps: &Range<usize>,
        recorder: u64,
        stream: u64,
    ) -> HipResult<Self> {
        let arguments = arguments(session, exec, steps, stream)?;
        session.ask(&op::StreamBeginCapture { stream: recorder, mode: RELAXED })?;
        let mut left = arguments.iter();
        let recorded = tasks(exec, steps).try_for_each(|task| match task {
            Task::Kernel(kernel) => left.next().map_or(Ok(()), |next| kernel.send(session, recorder, next)),
            Task::Copy(copy) => copy.enqueue(session, recorder),
            Task::Fill(fill) => fill.enqueue(session, recorder),
            Task::Record(_) | Task::Wait(_) | Task::Host(..) => Ok(()),
        });
        let graph = session.ask(&op::StreamEndCapture { stream: recorder })?.graph;
        let ready = recorded.and_then(|()| session.ask(&op::GraphInstantiate { graph, flags: 0 }));
        session.tell(&op::GraphDestroy { graph })?;
        Ok(Self { exec: ready?.graph_exec, arguments })
    }

    /// Whether the kernels would have the same arguments now; what the program wrote to memory that they share goes to the worker.
    fn holds(
        &self,
        session: &Session,
        exec: &Exec<Task>,
        steps: &Range<usize>,
        stream: u64,
    ) -> HipResult<bool> {
        if session.mirrors().is_empty() {
            return Ok(true);
        }
        Ok(arguments(session, exec, steps, stream)? == self.arguments)
    }
}

/// The arguments that the kernels would have, launched on this stream now.
fn arguments(
    session: &Session,
    exec: &Exec<Task>,
    steps: &Range<usize>,
    stream: u64,
) -> HipResult<Vec<Encoded>> {
    let kernels = tasks(exec, steps)
        .filter_map(|task| if let Task::Kernel(kernel) = task { Some(kernel) } else { None });
    kernels.map(|kernel| kernel.arguments(session, stream)).collect()
}

/// The stream that graphs are recorded on.
///
/// # Errors
/// What the worker says.
pub(crate) fn new_recorder(session: &Session) -> HipResult<u64> {
    Ok(session.ask(&op::StreamCreate { flags: NON_BLOCKING, priority: 0 })?.stream)
}
