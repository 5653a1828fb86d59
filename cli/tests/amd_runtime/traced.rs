//! The trace of a program over a worker that serves AMD's runtime on the emulated GPUs has the device's times.

use super::{HIPR, Release, SKIPPED, System, serve};
use hipr_tests::toolchain::compile;
use hipr_trace::{Item, Slice, Summary, category};
use std::path::Path;
use std::process::Command;

/// Times of events are milliseconds as 32-bit floats.
const ROUNDED_NS: u64 = 10_000;

fn traces(release: Release, isolation: &str) {
    let Some(system) = System::new() else { return };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/trace/program.hip");
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compile(&source, "-O1", folder.path(), "program", SKIPPED) else { return };
    let worker = serve(system.hipr(release), release, isolation, &[]);
    let file = folder.path().join("a.pftrace");
    let address = worker.address().to_string();
    let output = Command::new(HIPR)
        .args(["trace", "--worker", &address, "-o"])
        .arg(&file)
        .arg("--")
        .arg(&program)
        .output()
        .expect("hipr runs");
    assert!(output.status.success(), "{output:?}\n{}", worker.log());
    let items = hipr_trace::read(&file).expect("a trace");
    assert_eq!(Summary::of(&items).lost, 0);
    let slices = |kind: &str| -> Vec<&Slice> {
        let slices =
            items.iter().filter_map(|item| if let Item::Slice(slice) = item { Some(slice) } else { None });
        slices.filter(|slice| slice.category == kind).collect()
    };
    let mut work = slices(category::WORK);
    work.sort_by_key(|work| work.start_ns);
    let kernels = work.iter().filter(|work| work.name == "add_one(int*)").count();
    // The program clears memory, and looks at the result of each kernel.
    assert_eq!((kernels, work.len()), (10, 21), "{work:?}");
    for pair in work.windows(2) {
        assert!(pair[0].end_ns <= pair[1].start_ns + ROUNDED_NS, "one after the other: {pair:?}");
    }
    let requests = slices(category::REQUEST);
    let looks: Vec<_> = requests.iter().filter(|request| request.name == "MEMCPY").collect();
    assert_eq!(looks.len(), 10, "{requests:?}");
    let free = requests.iter().find(|request| request.name == "FREE").expect("it waits for all work");
    for work in work {
        let [flow] = work.flows[..] else { panic!("one flow: {work:?}") };
        let request = requests.iter().find(|request| request.flows.contains(&flow)).expect("a request");
        assert!(request.start_ns <= work.start_ns, "not before it is enqueued: {request:?} {work:?}");
        let next = looks.iter().find(|looks| looks.end_ns >= request.end_ns).expect("it looks at the result");
        // Its end is an event's behind it, for which nobody waits.
        assert!(work.start_ns <= next.end_ns, "not after its result is there: {work:?} {next:?}");
        assert!(work.end_ns <= free.end_ns, "{work:?} {free:?}");
    }
}

#[test]
fn a_trace_has_the_times_of_hip_6() {
    traces(Release::Hip6, "none");
    traces(Release::Hip6, "process");
}

#[test]
fn a_trace_has_the_times_of_hip_7() {
    traces(Release::Hip7, "none");
    traces(Release::Hip7, "process");
}
