//! Instantiated graphs that also exist on the worker.
//!
//! A graph that is launched again as it was the last time is given to the worker: what its nodes ask for, recorded there instead of
//! done, and from then on launched with one message. Nodes that need this process (copies from and to its memory, its functions) or
//! its knowledge of events stay here; they divide a graph into parts. A graph that is changed is given anew only when it is
//! launched twice as it is then: three round trips are worth it for what comes again and again.

use std::ops::Range;

use hipr_graph::Exec;
use hipr_proto::op::kind;
use hipr_proto::{HipError, HipResult};

use crate::command::{
    Arguments, Command, GraphPart, KernelLaunch, Node, RemoteGraph, RemotePart, Transfer, nodes,
};
use crate::stream::Streams;
use crate::worker::Port;

/// Smallest number of nodes for which a graph on the worker pays.
const PART_MIN: usize = 2;

impl Streams {
    /// Copies a graph to the worker by capturing it on the stream `recorder`, which has no other use. `stream` is the one that
    /// it will be launched on. Returns None if there is nothing that the worker could do of itself.
    ///
    /// # Errors
    /// What the worker says; it has nothing then.
    pub(super) fn upload(
        &self,
        port: &dyn Port,
        exec: &Exec<Node>,
        recorder: u64,
        stream: u64,
    ) -> HipResult<Option<RemoteGraph>> {
        if self.mirrors.are_several() {
            // Its nodes may use memory of different workers.
            return Ok(None);
        }
        let mut remote = RemoteGraph { device: self.order.device_of(stream), parts: Vec::new() };
        for (goes, steps) in self.cut(port, exec, stream)? {
            let mut part = None;
            if goes && nodes(exec, steps.clone()).count() >= PART_MIN {
                match self.upload_part(port, exec, &steps, recorder, stream) {
                    Ok(uploaded) => part = Some(uploaded),
                    Err(error) => {
                        let parts = remote.parts.iter().filter_map(|(_, part)| part.as_ref());
                        parts.map(|part| part.exec).try_for_each(|exec| port.destroy_exec(exec))?;
                        return Err(error);
                    }
                }
            }
            remote.parts.push((steps, part));
        }
        Ok(remote.parts.iter().any(|(_, part)| part.is_some()).then_some(remote))
    }

    /// Splits a graph into parts that the worker can execute by itself and parts that it cannot; the first of each pair
    /// says which.
    fn cut(&self, port: &dyn Port, exec: &Exec<Node>, stream: u64) -> HipResult<Vec<(bool, Range<usize>)>> {
        let mut parts: Vec<(bool, Range<usize>)> = Vec::new();
        for (at, step) in exec.steps().iter().enumerate() {
            let goes = match step.work() {
                Some(node) if !node.is_only_noted() => self.needs_only_the_worker(port, node, stream)?,
                // Nothing, wherever it is.
                _ => parts.last().is_some_and(|(goes, _)| *goes),
            };
            match parts.last_mut() {
                Some((last, steps)) if *last == goes => steps.end = at + 1,
                _ => parts.push((goes, at..at + 1)),
            }
        }
        Ok(parts)
    }

    fn upload_part(
        &self,
        port: &dyn Port,
        exec: &Exec<Node>,
        steps: &Range<usize>,
        recorder: u64,
        stream: u64,
    ) -> HipResult<RemotePart> {
        let arguments = {
            // As for a launch, so that what is sent of the memory fits the work that may be under way.
            self.mirror(stream).announce();
            let arguments = self.arguments(port, nodes(exec, steps.clone()), stream);
            self.mirror(stream).retract();
            arguments?
        };
        port.begin_capture(recorder)?;
        let mut left = arguments.iter();
        let recorded = nodes(exec, steps.clone()).try_for_each(|node| match &**node {
            Command::Kernel(kernel) => left.next().map_or(Ok(()), |next| port.launch(kernel, next, recorder)),
            Command::Copy(copy) => {
                let (to, from) = (copy.dst.at.wire(), copy.src.at.wire());
                let kind = kind::DEVICE_TO_DEVICE;
                port.copy(
                    &Transfer { kind, to, from, copy: *copy, stream: recorder, is_blocking: false },
                    &[],
                )
            }
            Command::Fill(fill) => {
                if !fill.is_aligned() {
                    return Err(HipError::INVALID_VALUE);
                }
                (0..fill.height)
                    .try_for_each(|y| port.fill(fill.row(y).wire(), fill.pattern, fill.width, recorder))
            }
            _ => Ok(()),
        });
        let graph = port.end_capture(recorder)?;
        let exec = recorded.and_then(|()| port.instantiate(graph));
        port.destroy_graph(graph)?;
        Ok(RemotePart { exec: exec?, arguments })
    }

    /// Returns the arguments with which the kernels would be launched on this stream now; sends what the program wrote to
    /// memory that they use.
    fn arguments<'a>(
        &self,
        port: &dyn Port,
        nodes: impl Iterator<Item = &'a Node>,
        stream: u64,
    ) -> HipResult<Vec<Arguments>> {
        let kernels =
            nodes.filter_map(|node| if let Command::Kernel(kernel) = &**node { Some(kernel) } else { None });
        kernels.map(|kernel| self.device_arguments(port, kernel, stream)).collect()
    }

    /// Returns a kernel's arguments with device addresses; sends what the program wrote to memory that it uses.
    ///
    /// # Errors
    /// What the worker answers.
    pub(in crate::stream) fn device_arguments(
        &self,
        port: &dyn Port,
        kernel: &KernelLaunch,
        stream: u64,
    ) -> HipResult<Arguments> {
        let mut arguments = kernel.arguments.clone();
        self.mirror(stream).before_launch(port, stream, arguments.data())?;
        Ok(arguments)
    }

    /// Returns whether the kernels of a part would be launched with the same arguments now; sends what the program wrote to
    /// memory that they use.
    ///
    /// # Errors
    /// What the worker answers.
    pub(in crate::stream) fn is_current(
        &self,
        port: &dyn Port,
        part: &GraphPart,
        stream: u64,
    ) -> HipResult<bool> {
        let Some(remote) = part.on_worker() else { return Ok(false) };
        if self.mirrors.is_empty() {
            return Ok(true);
        }
        Ok(self.arguments(port, part.nodes(), stream)? == remote.arguments)
    }
}
