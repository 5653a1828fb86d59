//! Tests graphs and captures through the public API.

use hipr_graph::{Captures, Content, Graphs, HEIGHT_MAX, Mode, Status, UpdateResult, Work, node_type};
use hipr_proto::HipError;

/// Work that is only a number; numbers above 1 count as much against the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Note(usize);

impl Work for Note {
    fn node_type(&self) -> i32 {
        if self.0 < 1000 { node_type::KERNEL } else { node_type::MEMSET }
    }

    fn weight(&self) -> usize {
        self.0.max(1)
    }
}

const INVALID: HipError = HipError::INVALID_VALUE;

fn order(graphs: &Graphs<Note>, graph: u64) -> Vec<usize> {
    let exec = graphs.instantiate(graph).expect("an order");
    exec.steps().iter().filter_map(|step| step.work().map(|note| note.0)).collect()
}

#[test]
fn every_node_comes_after_those_it_depends_on() {
    let mut graphs = Graphs::default();
    let graph = graphs.create();
    let [a, b, c, d] = [1, 2, 3, 4].map(|n| graphs.add(graph, &[], Some(Note(n))).expect("a node"));
    assert_eq!(order(&graphs, graph), [1, 2, 3, 4], "in the order of adding where nothing else is said");
    graphs.add_edges(graph, &[(d, a), (c, a), (b, d)]).expect("edges");
    assert_eq!(order(&graphs, graph), [2, 3, 4, 1]);
    graphs.add_edges(graph, &[(a, b)]).expect("an edge that closes a circle");
    assert_eq!(graphs.instantiate(graph).err(), Some(INVALID));
    graphs.remove_edges(graph, &[(b, d)]).expect("an edge");
    assert_eq!(graphs.remove_edges(graph, &[(b, d)]), Err(INVALID), "it is gone");
    assert_eq!(order(&graphs, graph), [3, 4, 1, 2]);
    assert_eq!(graphs.roots(graph).expect("roots").collect::<Vec<_>>(), [c, d]);
    assert_eq!(graphs.dependencies(a).expect("nodes").collect::<Vec<_>>(), [c, d]);
    assert_eq!(graphs.dependents(a).expect("nodes").collect::<Vec<_>>(), [b]);
    assert_eq!(graphs.edges(graph).expect("edges").collect::<Vec<_>>(), [(a, b), (c, a), (d, a)]);
}

#[test]
fn everything_is_counted_and_given_back() {
    let mut graphs = Graphs::default();
    let (graph, child) = (graphs.create(), graphs.create());
    let a = graphs.add(graph, &[], Some(Note(10))).expect("a node");
    let b = graphs.add(graph, &[a], None).expect("a node");
    assert_eq!(graphs.weight(), 2 + 10 + 1 + 1);
    graphs.add(child, &[], Some(Note(5))).expect("a node");
    let node = graphs.add_child(graph, &[b], child).expect("a child");
    assert_eq!(graphs.weight(), 14 + 5 + (1 + 1) + (1 + 5));
    assert_eq!(graphs.weight_of(graph), Ok(1 + 10 + 2 + 2 + 6));
    assert_eq!(graphs.set_work(a, Note(20)), Ok(()));
    assert_eq!(graphs.set_work(a, Note(2000)), Err(INVALID), "of another kind");
    assert_eq!(graphs.set_work(b, Note(1)), Err(INVALID));
    let Ok(Content::Child(inner)) = graphs.content(node).cloned() else { panic!("a child graph") };
    assert_eq!(graphs.destroy(inner), Err(INVALID), "it belongs to its node");
    let copy = graphs.copy(graph).expect("a copy");
    assert_eq!(order(&graphs, copy), [20, 5]);
    let found = graphs.find_in_copy(b, copy).expect("its copy");
    assert!(graphs.nodes(copy).expect("nodes").any(|node| node == found));
    assert_eq!(graphs.find_in_copy(found, copy), Err(INVALID));
    graphs.destroy_node(node).expect("a node");
    assert_eq!(graphs.check(inner), Err(INVALID), "it went with its node");
    for graph in [graph, copy, child] {
        assert_eq!(graphs.destroy(graph), Ok(()));
    }
    assert_eq!(graphs.weight(), 0);
    assert_eq!(graphs.destroy(graph), Err(INVALID));
}

#[test]
fn graphs_in_graphs_have_an_end() {
    let mut graphs: Graphs<Note> = Graphs::default();
    let mut inner = graphs.create();
    let mut height = 1;
    let refused = loop {
        let outer = graphs.create();
        match graphs.add_child(outer, &[], inner) {
            Ok(_) => (inner, height) = (outer, height + 1),
            Err(why) => break why,
        }
    };
    assert_eq!((refused, height), (HipError::NOT_SUPPORTED, HEIGHT_MAX));
}

#[test]
fn a_ready_graph_can_be_changed() {
    let mut graphs = Graphs::default();
    let (graph, other) = (graphs.create(), graphs.create());
    let node = graphs.add(graph, &[], Some(Note(1))).expect("a node");
    graphs.add(graph, &[node], Some(Note(2))).expect("a node");
    let mut exec = graphs.instantiate(graph).expect("ready");
    exec.set_work(node, Note(7)).expect("its node");
    exec.set_enabled(node, false).expect("its node");
    assert_eq!(exec.work(node), Ok(&Note(7)));
    assert_eq!(exec.steps().iter().filter_map(|step| step.work()).collect::<Vec<_>>(), [&Note(2)]);
    assert_eq!(exec.set_work(node, Note(1000)), Err(INVALID), "of another kind");
    let first = graphs.add(other, &[], Some(Note(3))).expect("a node");
    let second = graphs.add(other, &[], Some(Note(4))).expect("a node");
    let result = |exec: &mut hipr_graph::Exec<Note>, graphs: &Graphs<Note>| {
        exec.update(&graphs.instantiate(other).expect("ready")).err().map(|why| (why.result, why.node))
    };
    assert_eq!(result(&mut exec, &graphs), Some((UpdateResult::TopologyChanged, Some(second))));
    graphs.add_edges(other, &[(first, second)]).expect("an edge");
    assert_eq!(result(&mut exec, &graphs), None);
    assert_eq!((exec.work(node), exec.is_enabled(node)), (Ok(&Note(3)), Ok(false)));
    graphs.destroy_node(second).expect("a node");
    assert_eq!(result(&mut exec, &graphs), Some((UpdateResult::TopologyChanged, None)));
    let third = graphs.add(other, &[first], Some(Note(1000))).expect("a node");
    assert_eq!(result(&mut exec, &graphs), Some((UpdateResult::NodeTypeChanged, Some(third))));
}

#[test]
fn the_nodes_of_a_child_graph_can_be_changed() {
    let mut graphs = Graphs::default();
    let [graph, child, other] = [0; 3].map(|_| graphs.create());
    let chain = |graphs: &mut Graphs<Note>, graph, notes: [usize; 2]| {
        let first = graphs.add(graph, &[], Some(Note(notes[0]))).expect("a node");
        graphs.add(graph, &[first], Some(Note(notes[1]))).expect("a node")
    };
    chain(&mut graphs, child, [1, 2]);
    let last = chain(&mut graphs, other, [3, 4]);
    let root = graphs.add(graph, &[], Some(Note(5))).expect("a node");
    let node = graphs.add_child(graph, &[root], child).expect("a child");
    graphs.add(graph, &[node], Some(Note(6))).expect("a node");
    let mut exec = graphs.instantiate(graph).expect("ready");
    let works = |exec: &hipr_graph::Exec<Note>| {
        exec.steps().iter().filter_map(|step| step.work().map(|note| note.0)).collect::<Vec<_>>()
    };
    assert_eq!(exec.set_child(node, &graphs.instantiate(other).expect("ready")), Ok(()));
    assert_eq!((works(&exec), exec.weight()), (vec![5, 3, 4, 6], 1 + 5 + (1 + 1) + 3 + (4 + 1) + (6 + 1)));
    assert_eq!(
        exec.set_child(root, &graphs.instantiate(other).expect("ready")),
        Err(INVALID),
        "no child graph"
    );
    assert_eq!(
        exec.set_child(last, &graphs.instantiate(other).expect("ready")),
        Err(INVALID),
        "not its node"
    );
    // Another shape: nodes side by side, another type, one node more.
    let first = graphs.dependencies(last).expect("nodes").next().expect("one");
    graphs.remove_edges(other, &[(first, last)]).expect("an edge");
    let set = |exec: &mut hipr_graph::Exec<Note>, graphs: &Graphs<Note>| {
        exec.set_child(node, &graphs.instantiate(other).expect("ready"))
    };
    assert_eq!(set(&mut exec, &graphs), Err(HipError::UNKNOWN));
    graphs.destroy_node(last).expect("a node");
    let last = graphs.add(other, &[first], Some(Note(1000))).expect("a node");
    assert_eq!(set(&mut exec, &graphs), Err(HipError::UNKNOWN));
    graphs.destroy_node(last).expect("a node");
    graphs.add(other, &[first], Some(Note(7))).expect("a node");
    assert_eq!(set(&mut exec, &graphs), Ok(()));
    graphs.add(other, &[first], Some(Note(8))).expect("a node");
    assert_eq!(set(&mut exec, &graphs), Err(HipError::UNKNOWN));
    assert_eq!(works(&exec), [5, 3, 7, 6]);
    // Nodes beside a child graph are not nodes in it.
    let beside = graphs.create();
    let empty = graphs.create();
    let root = graphs.add(beside, &[], Some(Note(5))).expect("a node");
    let node = graphs.add_child(beside, &[root], empty).expect("a child");
    graphs.add(beside, &[node], Some(Note(6))).expect("a node");
    let mut exec = graphs.instantiate(beside).expect("ready");
    assert_eq!(exec.set_child(node, &graphs.instantiate(empty).expect("ready")), Ok(()));
    assert_eq!(exec.set_child(node, &graphs.instantiate(child).expect("ready")), Err(HipError::UNKNOWN));
}

#[test]
fn a_capture_belongs_to_its_thread_and_stream() {
    let (mut graphs, mut captures) = (Graphs::<Note>::default(), Captures::default());
    captures.begin(&mut graphs, 10, true, Mode::ThreadLocal, 1, None).expect("a capture");
    assert_eq!(captures.check_safe(1, Mode::Global), Err(HipError::STREAM_CAPTURE_UNSUPPORTED));
    assert_eq!(captures.check_safe(2, Mode::Global), Ok(()), "another thread is free to");
    assert_eq!(captures.check_legacy(), Err(HipError::STREAM_CAPTURE_IMPLICIT));
    assert_eq!(captures.end(&mut graphs, 10, 2), Err(HipError::STREAM_CAPTURE_WRONG_THREAD));
    let node = captures.record_work(&mut graphs, 10, Some(Note(1))).expect("a node");
    let graph = captures.end(&mut graphs, 10, 1).expect("a graph");
    assert_eq!(graphs.nodes(graph).expect("nodes").collect::<Vec<_>>(), [node]);
    assert!(captures.is_empty());
    // Into a graph that is there, behind a node of it; it stays even when the capture fails.
    captures.begin(&mut graphs, 10, false, Mode::Relaxed, 1, Some((graph, &[node]))).expect("a capture");
    assert_eq!((captures.check_safe(1, Mode::Global), captures.check_legacy()), (Ok(()), Ok(())));
    let next = captures.record_work(&mut graphs, 10, None).expect("a node");
    assert_eq!(graphs.dependencies(next).expect("nodes").collect::<Vec<_>>(), [node]);
    captures.invalidate(10);
    assert_eq!(captures.status(10), Status::Invalidated);
    assert_eq!(captures.end(&mut graphs, 10, 2), Err(HipError::STREAM_CAPTURE_INVALIDATED));
    assert_eq!(graphs.check(graph), Ok(()));
    // A stream that goes away takes its capture along, and the graph that was being made.
    captures.begin(&mut graphs, 11, true, Mode::Global, 1, None).expect("a capture");
    let forbidden = Err(HipError::STREAM_CAPTURE_UNSUPPORTED);
    let of_mode = |mode| [captures.check_safe(1, mode), captures.check_safe(2, mode)];
    assert_eq!(of_mode(Mode::Global), [forbidden, forbidden]);
    assert_eq!(of_mode(Mode::ThreadLocal), [forbidden, Ok(())]);
    assert_eq!(of_mode(Mode::Relaxed), [Ok(()), Ok(())]);
    let graph = captures.info(11).expect("a capture").graph;
    captures.forget_stream(&mut graphs, 11);
    assert_eq!((captures.is_empty(), graphs.check(graph)), (true, Err(INVALID)));
    // A graph that is destroyed while it is made is none at the end.
    captures.begin(&mut graphs, 12, true, Mode::Global, 1, None).expect("a capture");
    let graph = captures.info(12).expect("a capture").graph;
    assert_eq!((graphs.node_count(graph), graphs.destroy(graph)), (Ok(0), Ok(())));
    assert_eq!(captures.end(&mut graphs, 12, 1), Err(HipError::STREAM_CAPTURE_INVALIDATED));
    assert!(captures.is_empty());
}

#[test]
fn what_is_refused_spoils_the_captures_that_forbid_it() {
    const MODES: [Mode; 3] = [Mode::Global, Mode::ThreadLocal, Mode::Relaxed];
    type Refuse = fn(&mut Captures, u64, Mode) -> Result<(), HipError>;
    let unsafe_calls: Refuse = |captures, thread, mode| captures.refuse_unsafe(thread, mode);
    let device: Refuse = |captures, _, _| captures.refuse_all(HipError::STREAM_CAPTURE_UNSUPPORTED);
    let legacy: Refuse = |captures, _, _| captures.refuse_legacy();
    // Thread 1 captures on the blocking stream 10, thread 2 on 20, which is not blocking; threads 1 to 3 call.
    let combinations = MODES.into_iter().flat_map(|own| MODES.map(|other| (own, other)));
    for ((own, other), caller, thread) in combinations
        .flat_map(|modes| MODES.map(|caller| [1, 2, 3].map(|thread| (modes, caller, thread))))
        .flatten()
    {
        let of_thread = |capture, mode| thread == capture && mode != Mode::Relaxed;
        let one_of_threads = of_thread(1, own) || of_thread(2, other);
        let forbids = |capture, mode| match caller {
            Mode::Relaxed => false,
            Mode::ThreadLocal => of_thread(capture, mode),
            Mode::Global if one_of_threads => of_thread(capture, mode),
            Mode::Global => mode == Mode::Global,
        };
        let cases = [
            (unsafe_calls, HipError::STREAM_CAPTURE_UNSUPPORTED, [forbids(1, own), forbids(2, other)]),
            (device, HipError::STREAM_CAPTURE_UNSUPPORTED, [true, true]),
            (legacy, HipError::STREAM_CAPTURE_IMPLICIT, [true, false]),
        ];
        for (refuse, error, spoilt) in cases {
            let (mut graphs, mut captures) = (Graphs::<Note>::default(), Captures::default());
            captures.begin(&mut graphs, 10, true, own, 1, None).expect("a capture");
            captures.begin(&mut graphs, 20, false, other, 2, None).expect("a capture");
            let what =
                format!("captures of {own:?} and {other:?}, called with {caller:?} by thread {thread}");
            let result = refuse(&mut captures, thread, caller);
            assert_eq!(result, if spoilt.contains(&true) { Err(error) } else { Ok(()) }, "{what}");
            let status = |is_spoilt| if is_spoilt { Status::Invalidated } else { Status::Active };
            assert_eq!([captures.status(10), captures.status(20)], spoilt.map(status), "{what}");
        }
    }
}
