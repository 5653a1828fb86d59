//! The suite's operations on graphs and stream captures.

use super::{Lost, NOWHERE, Suite, nothing};
use hipr_proto::op::{self, kind};

/// Encodes handles as a tail.
fn words(all: &[u64]) -> Vec<u8> {
    all.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Returns saxpy's arguments for 64 values of the buffer at `data`, in slots of 8 bytes.
fn saxpy_slots(factor: f32, data: u64) -> [u64; 4] {
    [factor.to_bits().into(), data, data + 256, 64]
}

impl Suite<'_> {
    /// Launches a graph with a node of each kind twice, then with other parameters, and a captured graph.
    pub(super) fn graphs(&mut self, buffer: u64, stream: u64, event: u64, function: u64) -> Result<(), Lost> {
        let graph = self.make(&op::GraphCreate { flags: 0 }, |reply| reply.graph)?;
        let child = self.make(&op::GraphCreate { flags: 0 }, |reply| reply.graph)?;
        let fill = op::GraphAddMemsetNode {
            graph: child,
            num_deps: 0,
            reserved: 0,
            dst: buffer,
            pitch: 64,
            value: 0x3f80_0000,
            element_size: 4,
            width: 16,
            height: 8,
        };
        self.make(&fill, |reply| reply.node)?;
        let (num_deps, reserved) = (1, 0);
        let add = op::GraphAddChildGraphNode { graph, num_deps: 0, reserved, child };
        let filled = self.make(&add, |reply| reply.node)?;
        let kernel = op::GraphAddKernelNode {
            graph,
            num_deps,
            reserved,
            func: function,
            grid_dim: [1; 3],
            block_dim: [64, 1, 1],
            shared_mem_bytes: 0,
            num_args: 4,
        };
        let arguments = saxpy_slots(2.0, buffer);
        let tail = words(&[&[filled][..], &arguments].concat());
        let launched = self.request(&kernel, &tail, None, nothing)?.map_or(NOWHERE, |reply| reply.node);
        let last = words(&[launched]);
        let rows = op::GraphAddMemcpyNode {
            graph,
            num_deps,
            reserved,
            dst: buffer + 1024,
            src: buffer,
            width: 32,
            height: 16,
            dst_pitch: 64,
            src_pitch: 32,
            kind: kind::DEVICE_TO_DEVICE,
            reserved2: 0,
        };
        self.request(&rows, &last, None, nothing)?;
        let flat = op::GraphAddMemcpyNode1D {
            graph,
            num_deps,
            reserved,
            dst: buffer + 2048,
            src: buffer,
            count: 512,
            kind: kind::DEFAULT,
        };
        self.request(&flat, &last, None, nothing)?;
        self.request(&op::GraphAddHostNode { graph, num_deps, reserved }, &last, None, nothing)?;
        let record = op::GraphAddEventRecordNode { graph, num_deps, reserved, event };
        let recorded = self.request(&record, &last, None, nothing)?.map_or(NOWHERE, |reply| reply.node);
        let wait = op::GraphAddEventWaitNode { graph, num_deps, reserved, event };
        self.request(&wait, &words(&[recorded]), None, nothing)?;
        let empty = op::GraphAddEmptyNode { graph, num_deps: 0 };
        let empty = self.make(&empty, |reply| reply.node)?;
        let edge = op::GraphAddDependencies { graph, num_deps: 1 };
        self.request(&edge, &words(&[recorded, empty]), None, nothing)?;
        self.request(&edge, &words(&[recorded, empty]), None, nothing)?;
        self.ask(&op::GraphGetNodes { graph, max_nodes: 99 })?;
        self.ask(&op::GraphGetRootNodes { graph, max_nodes: 99 })?;
        self.ask(&op::GraphGetEdges { graph, max_edges: 99 })?;
        self.ask(&op::GraphNodeGetType { node: launched })?;
        self.ask(&op::GraphNodeGetDependencies { node: launched, max_nodes: 99 })?;
        self.ask(&op::GraphNodeGetDependentNodes { node: launched, max_nodes: 99 })?;
        let copy = self.make(&op::GraphClone { original_graph: graph }, |reply| reply.cloned_graph)?;

        let ready = op::GraphInstantiate { graph, flags: 0 };
        let graph_exec = self.make(&ready, |reply| reply.graph_exec)?;
        self.both(&op::GraphLaunch { graph_exec, stream }, &[], None)?;
        self.ask(&op::StreamSynchronize { stream })?;
        self.read(buffer, 3072)?;
        let other = op::GraphExecKernelNodeSetParams {
            graph_exec,
            node: launched,
            func: function,
            grid_dim: [1; 3],
            block_dim: [64, 1, 1],
            shared_mem: 0,
            num_params: 4,
        };
        self.request(&other, &words(&saxpy_slots(3.0, buffer)), None, nothing)?;
        self.request(&op::GraphLaunch { graph_exec, stream }, &[], None, nothing)?;
        self.read(buffer, 3072)?;
        self.ask(&op::GraphExecUpdate { graph_exec, graph: copy })?;
        self.request(&op::GraphLaunch { graph_exec, stream }, &[], None, nothing)?;
        self.read(buffer, 3072)?;
        self.ask(&op::GraphDestroyNode { node: empty })?;
        self.ask(&op::GraphExecUpdate { graph_exec, graph })?;

        self.capture(buffer, stream)?;
        self.both(&op::GraphExecDestroy { graph_exec }, &[], None)?;
        // The second one names what is gone, which is told once.
        self.ask(&op::GetLastError {})?;
        for graph in [graph, child, copy] {
            self.request(&op::GraphDestroy { graph }, &[], None, nothing)?;
        }
        Ok(())
    }

    fn capture(&mut self, buffer: u64, stream: u64) -> Result<(), Lost> {
        self.ask(&op::StreamBeginCapture { stream, mode: 0 })?;
        self.ask(&op::StreamIsCapturing { stream })?;
        let fill = op::MemsetAsync(op::Memset { dst: buffer, value: 7, size: 64, stream });
        self.both(&fill, &[], None)?;
        let none = op::StreamUpdateCaptureDependencies { stream, num_dependencies: 0, flags: 1 };
        self.request(&none, &[], None, nothing)?;
        self.ask(&op::Malloc { size: 64, flags: 0 })?;
        let graph = self.make(&op::StreamEndCapture { stream }, |reply| reply.graph)?;
        self.ask(&op::GraphGetEdges { graph, max_edges: 9 })?;
        self.ask(&op::GraphDestroy { graph })?;
        self.ask(&op::StreamAddCallback { stream, callback_id: 1, flags: 0 })?;
        Ok(())
    }
}
