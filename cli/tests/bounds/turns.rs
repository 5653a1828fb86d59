//! Few requests that stand for much work of the worker itself: others are served meanwhile, and the worker can be ended.

use crate::attacker::{Attack, loops_with, request};
use hipr_proto::{HipError, ReplyMode, op};
use hipr_tests::WorkerProcess;
use std::io::Write;
use std::time::{Duration, Instant};

/// Handles for the attacks, fewer than a worker allows by default.
const HANDLES: [&str; 2] = ["--handles-max", "1000000"];
/// Nodes of a large graph.
const NODES: usize = 20_000;
/// Requests, each of which looks at all nodes.
const UPDATES: usize = 60;

/// Makes a large graph; returns it, and an instance of it.
fn large_graph(attack: &mut Attack<'_>) -> (u64, u64) {
    let dst = attack.stop.part(8, 8).address();
    let wire = attack.gpu.wire();
    let graph = wire.call(&op::GraphCreate { flags: 0 }).expect("a graph").graph;
    let node = op::GraphAddMemsetNode {
        graph,
        num_deps: 0,
        reserved: 0,
        dst,
        pitch: 0,
        value: 1,
        element_size: 1,
        width: 1,
        height: 1,
    };
    let nodes = request(&node, &[]).repeat(NODES);
    wire.stream().write_all(&nodes).expect("the worker reads");
    let instantiate = op::GraphInstantiate { graph, flags: 0 };
    let instance = wire.call(&instantiate).expect("an instance").graph_exec;
    (graph, instance)
}

/// Sends requests that take the worker long, and one that is answered after them.
fn send_updates(attack: &mut Attack<'_>) {
    let (graph, graph_exec) = large_graph(attack);
    let update = request(&op::GraphExecUpdate { graph_exec, graph }, &[]);
    let wire = attack.gpu.wire();
    wire.stream().write_all(&update.repeat(UPDATES)).expect("a few bytes");
    wire.send(&op::Ping {}, &[], None, ReplyMode::Always);
}

#[test]
fn others_are_served_while_large_graphs_are_updated() {
    for worker in loops_with(&HANDLES) {
        let mut attack = Attack::begin(&worker);
        send_updates(&mut attack);
        let mut served = 0;
        while !attack.is_answered() {
            attack.serve_another();
            served += 1;
        }
        assert!(served > 50, "others were served {served} times beside {UPDATES} updates");
        assert_eq!(attack.gpu.wire().wait::<op::Ping>().result, Ok(()), "all updates succeed");
    }
}

#[test]
fn a_worker_ends_when_it_is_told_to_whatever_it_does() {
    for mut worker in loops_with(&HANDLES) {
        let mut attack = Attack::begin(&worker);
        send_updates(&mut attack);
        worker.terminate();
        let last = attack.gpu.wire().try_wait::<op::Ping>();
        assert!(last.is_err(), "the worker ends before its work is done");
        drop(attack);
        assert_eq!(worker.wait().code(), Some(0));
    }
}

/// Checks that what is refused for lack of handles is refused in the same way while the graphs are with another thread.
#[test]
fn a_large_graph_cannot_be_instantiated_beyond_the_limit() {
    for worker in loops_with(&["--handles-max", "50000"]) {
        let mut attack = Attack::begin(&worker);
        let (graph, first) = large_graph(&mut attack);
        let wire = attack.gpu.wire();
        let instantiate = op::GraphInstantiate { graph, flags: 0 };
        assert_eq!(wire.call(&instantiate).map(drop), Err(HipError::OUT_OF_MEMORY));
        assert_eq!(
            wire.call(&op::GraphClone { original_graph: graph }).map(drop),
            Err(HipError::OUT_OF_MEMORY)
        );
        assert_eq!(wire.call(&op::GraphExecDestroy { graph_exec: first }), Ok(()));
        assert_eq!(wire.call(&op::GraphExecDestroy { graph_exec: first }), Err(HipError::INVALID_VALUE));
        let copy = wire.call(&op::GraphClone { original_graph: graph }).expect("a copy").cloned_graph;
        assert_eq!(wire.call(&op::GraphDestroy { graph }), Ok(()));
        let launched =
            wire.call(&op::GraphInstantiate { graph: copy, flags: 0 }).expect("an instance").graph_exec;
        assert_eq!(wire.call(&op::GraphLaunch { graph_exec: launched, stream: 0 }), Ok(()));
        assert_eq!(attack.gpu.synchronize(), Ok(()));
        let set = attack.stop.part(8, 8);
        assert_eq!(attack.gpu.download(set)[0], 1);
    }
}

/// Returns the shortest time of a few for sets and a synchronization after them.
fn time_of_sets(attack: &mut Attack<'_>) -> Duration {
    let dst = attack.stop.part(8, 8).address();
    let sets = request(&op::MemsetAsync(op::Memset { dst, value: 1, size: 1, stream: 0 }), &[]).repeat(2000);
    let time = |attack: &mut Attack<'_>| {
        let start = Instant::now();
        attack.gpu.wire().stream().write_all(&sets).expect("the worker reads");
        assert_eq!(attack.gpu.synchronize(), Ok(()));
        start.elapsed()
    };
    (0..5).map(|_| time(attack)).min().expect("five times")
}

/// Checks that a command does not cost more the more streams there are. (It took a thousand times as long.)
#[test]
fn a_command_costs_the_same_however_many_streams_there_are() {
    const STREAMS: usize = 100_000;
    fn check(worker: &WorkerProcess) {
        let mut attack = Attack::begin(worker);
        let few = time_of_sets(&mut attack);
        let create = request(&op::StreamCreate { flags: 0, priority: 0 }, &[]);
        attack.gpu.wire().stream().write_all(&create.repeat(STREAMS)).expect("the worker reads");
        assert_eq!(attack.gpu.synchronize(), Ok(()));
        let many = time_of_sets(&mut attack);
        assert!(many < 50 * few, "{many:?} with many streams, {few:?} with few");
    }
    loops_with(&HANDLES).iter().for_each(check);
}
