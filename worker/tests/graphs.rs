//! Tests of graphs and stream captures over a real socket: effect and order of a launch, refused calls, and that other sessions
//! see none of it.

mod common;

use common::*;
use hipr_proto::op::*;
use hipr_proto::{HipError, HipResult};
use hipr_worker::device::script::Script;

const INVALID: HipError = HipError::INVALID_VALUE;

/// Returns handles as the bytes of a request's tail.
fn words(all: &[u64]) -> Vec<u8> {
    all.iter().flat_map(|word| word.to_le_bytes()).collect()
}

trait Graphs {
    fn graph(&mut self) -> u64;
    fn fill(&mut self, graph: u64, deps: &[u64], dst: u64, value: u8, len: u64) -> HipResult<u64>;
    fn copy(&mut self, graph: u64, deps: &[u64], dst: u64, src: u64, len: u64) -> HipResult<u64>;
    fn kernel(&mut self, graph: u64, deps: &[u64], func: u64, slots: &[u64]) -> HipResult<u64>;
    fn empty(&mut self, graph: u64, deps: &[u64]) -> HipResult<u64>;
    fn ready(&mut self, graph: u64) -> HipResult<u64>;
    fn edges(&mut self, graph: u64, edges: &[u64]) -> HipResult<()>;
}

fn count(all: &[u64]) -> u32 {
    u32::try_from(all.len()).unwrap()
}

impl Graphs for Peer {
    fn graph(&mut self) -> u64 {
        self.call(&GraphCreate { flags: 0 }).unwrap().graph
    }

    fn fill(&mut self, graph: u64, deps: &[u64], dst: u64, value: u8, len: u64) -> HipResult<u64> {
        let node = GraphAddMemsetNode {
            graph,
            num_deps: count(deps),
            reserved: 0,
            dst,
            pitch: len,
            value: value.into(),
            element_size: 1,
            width: len,
            height: 1,
        };
        self.call_with(&node, &words(deps)).map(|reply| reply.node)
    }

    fn copy(&mut self, graph: u64, deps: &[u64], dst: u64, src: u64, len: u64) -> HipResult<u64> {
        let (num_deps, kind) = (count(deps), kind::DEVICE_TO_DEVICE);
        let node = GraphAddMemcpyNode1D { graph, num_deps, reserved: 0, dst, src, count: len, kind };
        self.call_with(&node, &words(deps)).map(|reply| reply.node)
    }

    fn kernel(&mut self, graph: u64, deps: &[u64], func: u64, slots: &[u64]) -> HipResult<u64> {
        let node = GraphAddKernelNode {
            graph,
            num_deps: count(deps),
            reserved: 0,
            func,
            grid_dim: [2, 1, 1],
            block_dim: [64, 1, 1],
            shared_mem_bytes: 16,
            num_args: count(slots),
        };
        self.call_with(&node, &words(&[deps, slots].concat())).map(|reply| reply.node)
    }

    fn empty(&mut self, graph: u64, deps: &[u64]) -> HipResult<u64> {
        let node = GraphAddEmptyNode { graph, num_deps: count(deps) };
        self.call_with(&node, &words(deps)).map(|reply| reply.node)
    }

    fn ready(&mut self, graph: u64) -> HipResult<u64> {
        self.call(&GraphInstantiate { graph, flags: 0 }).map(|reply| reply.graph_exec)
    }

    fn edges(&mut self, graph: u64, edges: &[u64]) -> HipResult<()> {
        self.call_with(&GraphAddDependencies { graph, num_deps: count(edges) / 2 }, &words(edges))
    }
}

/// Starts a session with 64 bytes of memory and a kernel whose parameters are an int, a struct of 12 bytes and a pointer.
fn session() -> (hipr_worker::Handle, Script, Peer, u64, u64) {
    let (worker, script) = scripted(|_| {});
    script.define_kernel("k", 32, &[(0, 4), (4, 12), (16, 8)]);
    let mut peer = Peer::hello(worker.local_addr());
    let memory = peer.malloc(64);
    let module = peer.module_load();
    let function = peer.function(module, "k");
    (worker, script, peer, memory, function)
}

#[test]
fn a_launch_does_what_the_nodes_say_after_what_they_depend_on() {
    let (_worker, script, mut peer, memory, function) = session();
    let graph = peer.graph();
    // Added in the wrong order: the copy first, then what it depends on.
    let copy = peer.copy(graph, &[], memory + 32, memory, 8).unwrap();
    let fill = peer.fill(graph, &[], memory, 7, 16).unwrap();
    let later = peer.fill(graph, &[copy], memory, 9, 4).unwrap();
    peer.kernel(graph, &[later], function, &[1, 2, 3, 4]).unwrap();
    assert_eq!(peer.edges(graph, &[fill, copy]), Ok(()));
    let exec = peer.ready(graph).unwrap();
    // The ready graph is a copy: what happens to the graph does not matter to it.
    assert_eq!(peer.call(&GraphDestroy { graph }), Ok(()));
    let stream = peer.stream_create();
    for round in 1..=2 {
        peer.h2d(memory, &[0; 64], stream);
        peer.forget(&GraphLaunch { graph_exec: exec, stream }, &[]);
        let expected =
            [[9; 4], [7; 4], [7; 4], [7; 4], [0; 4], [0; 4], [0; 4], [0; 4], [7; 4], [7; 4]].concat();
        assert_eq!(peer.d2h(memory, 40, stream).unwrap(), expected);
        let launches = script.launches();
        assert_eq!(launches.len(), round);
        let launch = launches.last().unwrap();
        assert_eq!((launch.grid, launch.block, launch.shared_mem_bytes), ([2, 1, 1], [64, 1, 1], 16));
        let argument = [2u64.to_le_bytes(), 3u64.to_le_bytes()].concat();
        let expected = [1u32.to_le_bytes().to_vec(), argument[..12].to_vec(), 4u64.to_le_bytes().to_vec()];
        assert_eq!(launch.args, expected, "each in as many slots as it needs");
    }
    assert_eq!(peer.call(&GraphExecDestroy { graph_exec: exec }), Ok(()));
    assert_eq!(peer.call(&GraphLaunch { graph_exec: exec, stream }), Err(INVALID));
}

#[test]
fn child_graphs_are_copies_that_run_in_their_place() {
    let (_worker, _script, mut peer, memory, _) = session();
    let (child, graph) = (peer.graph(), peer.graph());
    peer.fill(child, &[], memory, 1, 4).unwrap();
    let before = peer.fill(graph, &[], memory, 5, 8).unwrap();
    let add = GraphAddChildGraphNode { graph, num_deps: 1, reserved: 0, child };
    let node = peer.call_with(&add, &words(&[before])).unwrap().node;
    assert_eq!(peer.call(&GraphNodeGetType { node }).unwrap().r#type, 4);
    peer.copy(graph, &[node], memory + 8, memory, 8).unwrap();
    assert_eq!(peer.call(&GraphDestroy { graph: child }), Ok(()));
    let exec = peer.ready(graph).unwrap();
    peer.call(&GraphLaunch { graph_exec: exec, stream: 0 }).unwrap();
    assert_eq!(peer.d2h(memory, 16, 0).unwrap(), [[1; 4], [5; 4], [1; 4], [5; 4]].concat());
    // Graphs in graphs have an end.
    let mut inner = peer.graph();
    let mut refused = None;
    for _ in 0..100 {
        let outer = peer.graph();
        let add = GraphAddChildGraphNode { graph: outer, num_deps: 0, reserved: 0, child: inner };
        refused = peer.call(&add).err();
        inner = outer;
        if refused.is_some() {
            break;
        }
    }
    assert_eq!(refused, Some(HipError::NOT_SUPPORTED));
}

#[test]
fn questions_about_graphs() {
    let (_worker, _script, mut peer, memory, function) = session();
    let event = peer.event_create();
    let graph = peer.graph();
    let a = peer.fill(graph, &[], memory, 0, 4).unwrap();
    let b = peer.copy(graph, &[], memory, memory + 8, 4).unwrap();
    let c = peer.kernel(graph, &[a, b], function, &[0; 4]).unwrap();
    let d = peer.empty(graph, &[a]).unwrap();
    let record = GraphAddEventRecordNode { graph, num_deps: 1, reserved: 0, event };
    let e = peer.call_with(&record, &words(&[c])).unwrap().node;
    let wait = GraphAddEventWaitNode { graph, num_deps: 1, reserved: 0, event };
    let f = peer.call_with(&wait, &words(&[e])).unwrap().node;
    let g = peer.call(&GraphAddHostNode { graph, num_deps: 0, reserved: 0 }).unwrap().node;
    let types: Vec<i32> =
        [a, b, c, d, e, f, g].map(|node| peer.call(&GraphNodeGetType { node }).unwrap().r#type).to_vec();
    assert_eq!(types, [2, 1, 0, 5, 7, 6, 3]);
    assert_eq!(peer.call(&GraphGetNodes { graph, max_nodes: 3 }).unwrap().num_nodes, 3);
    assert_eq!(peer.call(&GraphGetNodes { graph, max_nodes: 99 }).unwrap().num_nodes, 7);
    assert_eq!(peer.call(&GraphGetRootNodes { graph, max_nodes: 99 }).unwrap().num_nodes, 3);
    let (reply, list) = peer.call_inline(&GraphGetEdges { graph, max_edges: 99 }, &[]).unwrap();
    assert_eq!((reply.num_edges, list), (5, words(&[a, c, a, d, b, c, c, e, e, f])));
    assert_eq!(peer.call(&GraphNodeGetDependencies { node: c, max_nodes: 9 }).unwrap().num_nodes, 2);
    assert_eq!(peer.call(&GraphNodeGetDependentNodes { node: a, max_nodes: 9 }).unwrap().num_nodes, 2);
    let copy = peer.call(&GraphClone { original_graph: graph }).unwrap().cloned_graph;
    assert_eq!(peer.call(&GraphDestroyNode { node: c }), Ok(()));
    assert_eq!(peer.call(&GraphGetEdges { graph, max_edges: 99 }).unwrap().num_edges, 2);
    assert_eq!(peer.call(&GraphGetEdges { graph: copy, max_edges: 99 }).unwrap().num_edges, 5);
    assert_eq!(peer.call(&GraphNodeGetType { node: c }).map(drop), Err(INVALID));
    let exec = peer.ready(copy).unwrap();
    assert_eq!(peer.call(&GraphLaunch { graph_exec: exec, stream: 0 }), Ok(()));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let (worker, script, mut peer, memory, function) = session();
    let graph = peer.graph();
    let a = peer.empty(graph, &[]).unwrap();
    let b = peer.empty(graph, &[a]).unwrap();
    assert_eq!(peer.empty(graph, &[a, a]), Err(INVALID), "a dependency twice");
    assert_eq!(peer.empty(graph, &[77]), Err(INVALID));
    assert_eq!(peer.edges(graph, &[a, b]), Err(INVALID), "an edge that is there");
    assert_eq!(peer.edges(graph, &[a, a]), Err(INVALID));
    assert_eq!(peer.fill(graph, &[], memory + 60, 0, 5), Err(INVALID), "past the allocation");
    assert_eq!(peer.copy(graph, &[], memory, 4096, 4), Err(INVALID), "the client's own memory");
    assert_eq!(peer.kernel(graph, &[], function, &[0; 3]), Err(INVALID), "a slot is missing");
    assert_eq!(peer.kernel(graph, &[], 5, &[]), Err(HipError::INVALID_HANDLE));
    assert_eq!(peer.call(&GraphCreate { flags: 1 }).map(drop), Err(INVALID));
    assert_eq!(peer.call(&GraphInstantiate { graph, flags: 16 }).map(drop), Err(INVALID));
    let device_launch = peer.call(&GraphInstantiate { graph, flags: 4 }).map(drop);
    assert_eq!(device_launch, Err(HipError::NOT_SUPPORTED));
    assert_eq!(peer.edges(graph, &[b, a]), Ok(()));
    assert_eq!(peer.ready(graph), Err(INVALID), "a circle");
    // What a node names may be gone when it is launched; then nothing is done.
    let graph = peer.graph();
    peer.kernel(graph, &[], function, &[0; 4]).unwrap();
    peer.fill(graph, &[], memory, 0, 4).unwrap();
    let exec = peer.ready(graph).unwrap();
    assert_eq!(peer.call(&Free { device_ptr: memory }), Ok(()));
    assert_eq!(peer.call(&GraphLaunch { graph_exec: exec, stream: 0 }), Err(INVALID));
    assert_eq!(script.launches(), []);
    // Another session has graphs of its own.
    let mut other = Peer::hello(worker.local_addr());
    assert_eq!(other.call(&GraphDestroy { graph }), Err(INVALID));
    assert_eq!(other.call(&GraphLaunch { graph_exec: exec, stream: 0 }), Err(INVALID));
}

#[test]
fn a_ready_graph_takes_other_parameters() {
    let (_worker, script, mut peer, memory, function) = session();
    let (graph, other, third) = (peer.graph(), peer.graph(), peer.graph());
    let node = peer.kernel(graph, &[], function, &[1, 0, 0, 0]).unwrap();
    peer.fill(graph, &[node], memory, 1, 4).unwrap();
    let exec = peer.ready(graph).unwrap();
    let first = peer.kernel(other, &[], function, &[2, 0, 0, 0]).unwrap();
    peer.fill(other, &[first], memory, 2, 4).unwrap();
    assert_eq!(peer.call(&GraphExecUpdate { graph_exec: exec, graph: other }).unwrap().update_result, 0);
    peer.call(&GraphLaunch { graph_exec: exec, stream: 0 }).unwrap();
    assert_eq!(peer.d2h(memory, 4, 0).unwrap(), [2; 4]);
    let params = GraphExecKernelNodeSetParams {
        graph_exec: exec,
        node,
        func: function,
        grid_dim: [5, 1, 1],
        block_dim: [1, 1, 1],
        shared_mem: 0,
        num_params: 4,
    };
    peer.call_with(&params, &words(&[3, 0, 0, 0])).unwrap();
    peer.call(&GraphLaunch { graph_exec: exec, stream: 0 }).unwrap();
    let launched: Vec<_> =
        script.launches().iter().map(|launch| (launch.grid[0], launch.args[0].clone())).collect();
    assert_eq!(launched, [(2, vec![2, 0, 0, 0]), (5, vec![3, 0, 0, 0])]);
    peer.fill(third, &[], memory, 2, 4).unwrap();
    let refused = peer.call(&GraphExecUpdate { graph_exec: exec, graph: third }).map(drop);
    assert_eq!(refused, Err(HipError::GRAPH_EXEC_UPDATE_FAILURE));
}

#[test]
fn graphs_count_as_handles() {
    let (worker, _) = scripted(|config| config.session.handles_max = 10);
    let mut peer = Peer::hello(worker.local_addr());
    let graph = peer.graph();
    let mut last = vec![];
    for _ in 0..3 {
        last = vec![peer.empty(graph, &last).unwrap()];
    }
    let exec = peer.ready(graph);
    assert_eq!(exec, Err(HipError::OUT_OF_MEMORY), "1 + 3 + 2 twice is more than 10");
    assert_eq!(peer.call(&GraphClone { original_graph: graph }).map(drop), Err(HipError::OUT_OF_MEMORY));
    assert_eq!(peer.call(&GraphDestroy { graph }), Ok(()));
    assert_eq!((0..11).filter(|_| peer.call(&GraphCreate { flags: 0 }).is_ok()).count(), 10);
}

// ---- captures --------------------------------------------------------------------------------------------------------

#[test]
fn a_capturing_stream_records_and_works_again_afterwards() {
    let (_worker, script, mut peer, memory, function) = session();
    let (a, b, event, joined) =
        (peer.stream_create(), peer.stream_create(), peer.event_create(), peer.event_create());
    peer.h2d(memory, &[0; 64], a);
    assert_eq!(peer.call(&StreamSynchronize { stream: a }), Ok(()));
    peer.call(&StreamBeginCapture { stream: a, mode: 0 }).unwrap();
    assert_eq!(peer.call(&StreamIsCapturing { stream: a }).unwrap().capture_status, 1);
    assert_eq!(peer.call(&StreamIsCapturing { stream: b }).unwrap().capture_status, 0);
    peer.forget(&MemsetAsync(Memset { dst: memory, value: 3, size: 8, stream: a }), &[]);
    peer.forget(&EventRecord { event, stream: a }, &[]);
    peer.forget(&StreamWaitEvent { stream: b, event, flags: 0 }, &[]);
    peer.forget(&MemcpyAsync(d2d(memory + 8, memory, 8, b)), &[]);
    let mut tail = Vec::new();
    let args = [Param { offset: 0, size: 4 }, Param { offset: 4, size: 12 }, Param { offset: 16, size: 8 }];
    LaunchArgs::put(&args, &[6; 24], &mut tail);
    peer.forget(&LaunchKernel { stream: b, num_args: 3, ..launch(function) }, &tail);
    peer.forget(&EventRecord { event: joined, stream: b }, &[]);
    assert_eq!(peer.call(&StreamIsCapturing { stream: b }).unwrap().capture_status, 1);
    peer.forget(&StreamWaitEvent { stream: a, event: joined, flags: 0 }, &[]);
    let graph = peer.call(&StreamEndCapture { stream: a }).unwrap().graph;
    for stream in [a, b] {
        assert_eq!(peer.call(&StreamIsCapturing { stream }).unwrap().capture_status, 0);
    }
    assert_eq!(peer.d2h(memory, 16, a).unwrap(), [0; 16], "nothing was done");
    assert_eq!(script.launches(), []);
    assert_eq!(peer.call(&GraphGetNodes { graph, max_nodes: 9 }).unwrap().num_nodes, 3);
    assert_eq!(peer.call(&GraphGetRootNodes { graph, max_nodes: 9 }).unwrap().num_nodes, 1);
    let exec = peer.ready(graph).unwrap();
    peer.forget(&GraphLaunch { graph_exec: exec, stream: b }, &[]);
    assert_eq!(peer.d2h(memory, 16, b).unwrap(), [3; 16]);
    assert_eq!(script.launches()[0].args, [vec![6; 4], vec![6; 12], vec![6; 8]]);
}

#[test]
fn what_spoils_a_capture() {
    let (_worker, _script, mut peer, memory, _) = session();
    let (a, b, event) = (peer.stream_create(), peer.stream_create(), peer.event_create());
    let begin = |stream| StreamBeginCapture { stream, mode: 0 };
    assert_eq!(peer.call(&begin(0)), Err(HipError::STREAM_CAPTURE_UNSUPPORTED));
    assert_eq!(peer.call(&StreamBeginCapture { stream: a, mode: 3 }), Err(INVALID));
    assert_eq!(peer.call(&StreamEndCapture { stream: a }).map(drop), Err(HipError::ILLEGAL_STATE));
    let invalidated = Err(HipError::STREAM_CAPTURE_INVALIDATED);
    // Waiting for the stream, and bytes that only this request has.
    peer.call(&begin(a)).unwrap();
    assert_eq!(peer.call(&begin(a)), Err(HipError::ILLEGAL_STATE));
    assert_eq!(peer.call(&StreamSynchronize { stream: a }), Err(HipError::STREAM_CAPTURE_UNSUPPORTED));
    assert_eq!(peer.call(&StreamIsCapturing { stream: a }).unwrap().capture_status, 2);
    let fill = Memset { dst: memory, value: 3, size: 8, stream: a };
    assert_eq!(peer.call(&MemsetAsync(fill)), invalidated);
    assert_eq!(peer.call(&StreamEndCapture { stream: a }).map(drop), invalidated);
    assert_eq!(peer.call(&StreamSynchronize { stream: a }), Ok(()));
    peer.call(&begin(a)).unwrap();
    let copied = peer.call_with(&h2d(memory, 4, a), &[1; 4]);
    assert_eq!(copied, Err(HipError::STREAM_CAPTURE_UNSUPPORTED));
    assert_eq!(peer.call(&StreamEndCapture { stream: a }).map(drop), invalidated);
    // Calls that are forbidden do not spoil it.
    peer.call(&begin(a)).unwrap();
    let malloc = peer.call(&Malloc { size: 4, flags: 0 }).map(drop);
    assert_eq!(malloc, Err(HipError::STREAM_CAPTURE_UNSUPPORTED));
    let null = peer.call(&MemsetAsync(Memset { stream: 0, ..fill }));
    assert_eq!(null, Err(HipError::STREAM_CAPTURE_IMPLICIT));
    assert_eq!(peer.call(&StreamEndCapture { stream: a }).map(drop), Ok(()));
    // Events: one from outside, one that is asked for, and one that joins another capture.
    peer.call(&EventRecord { event, stream: b }).unwrap();
    peer.call(&begin(a)).unwrap();
    let outside = peer.call(&StreamWaitEvent { stream: a, event, flags: 0 });
    assert_eq!(outside, Err(HipError::STREAM_CAPTURE_ISOLATION));
    assert_eq!(peer.call(&StreamEndCapture { stream: a }).map(drop), invalidated);
    peer.call(&begin(a)).unwrap();
    peer.call(&EventRecord { event, stream: a }).unwrap();
    assert_eq!(peer.call(&EventQuery { event }), Err(HipError::CAPTURED_EVENT));
    assert_eq!(peer.call(&StreamEndCapture { stream: a }).map(drop), invalidated);
    peer.call(&begin(a)).unwrap();
    peer.call(&begin(b)).unwrap();
    peer.call(&EventRecord { event, stream: a }).unwrap();
    let merged = peer.call(&StreamWaitEvent { stream: b, event, flags: 0 });
    assert_eq!(merged, Err(HipError::STREAM_CAPTURE_MERGE));
    for stream in [a, b] {
        assert_eq!(peer.call(&StreamEndCapture { stream }).map(drop), invalidated);
    }
    // A stream that joined and was not waited for; the end in the wrong place.
    peer.call(&begin(a)).unwrap();
    peer.call(&EventRecord { event, stream: a }).unwrap();
    peer.call(&StreamWaitEvent { stream: b, event, flags: 0 }).unwrap();
    peer.call(&MemsetAsync(Memset { stream: b, ..fill })).unwrap();
    let unmatched = peer.call(&StreamEndCapture { stream: b }).map(drop);
    assert_eq!(unmatched, Err(HipError::STREAM_CAPTURE_UNMATCHED));
    let unjoined = peer.call(&StreamEndCapture { stream: a }).map(drop);
    assert_eq!(unjoined, Err(HipError::STREAM_CAPTURE_UNJOINED));
    assert_eq!(peer.call(&StreamSynchronize { stream: b }), Ok(()));
}

#[test]
fn dependencies_of_a_capture_can_be_set() {
    let (_worker, _script, mut peer, memory, _) = session();
    let stream = peer.stream_create();
    peer.call(&StreamBeginCapture { stream, mode: 2 }).unwrap();
    let graph = peer.call(&StreamGetCaptureInfo { stream }).unwrap().graph;
    let own = peer.fill(graph, &[], memory, 1, 4).unwrap();
    let set = |nodes: &[u64], flags| StreamUpdateCaptureDependencies {
        stream,
        num_dependencies: count(nodes),
        flags,
    };
    assert_eq!(peer.call_with(&set(&[own], 1), &words(&[own])), Ok(()));
    peer.call(&MemcpyAsync(d2d(memory + 8, memory, 4, stream))).unwrap();
    let edges = peer.call(&GraphGetEdges { graph, max_edges: 9 }).unwrap().num_edges;
    assert_eq!(edges, 1);
    assert_eq!(peer.call_with(&set(&[9], 0), &words(&[9])), Err(INVALID));
    assert_eq!(peer.call_with(&set(&[], 2), &[]), Err(INVALID));
    assert_eq!(
        peer.call(&Malloc { size: 4, flags: 0 }).map(drop),
        Ok(()),
        "a relaxed capture forbids nothing"
    );
    assert_eq!(peer.call(&StreamEndCapture { stream }).unwrap().graph, graph);
}

#[test]
fn a_callback_is_answered_when_the_work_before_it_is_done() {
    let (_worker, script, mut peer, memory, _) = session();
    let stream = peer.stream_create();
    script.hold(0, stream);
    peer.forget(&MemsetAsync(Memset { dst: memory, value: 4, size: 4, stream }), &[]);
    let callback = StreamAddCallback { stream, callback_id: 1, flags: 0 };
    let call = peer.send(&callback, &[], hipr_proto::ReplyMode::Always).unwrap();
    peer.flush();
    until("the fill is enqueued", || script.calls("fill") == 1);
    script.surface(0, stream, HipError::LAUNCH_FAILURE);
    script.release(0, stream);
    let answer = peer.reply::<StreamAddCallback>(call).map(drop);
    assert_eq!(answer, Err(HipError::LAUNCH_FAILURE), "with what became of the work");
    assert_eq!(peer.call(&callback), Ok(()));
    assert_eq!(peer.call(&StreamAddCallback { flags: 1, ..callback }), Err(INVALID));
}
