//! The phases of the stream layer's calls, driven one by one through its public door with a worker that only writes down what it is
//! asked for.

mod script;
mod waits;

use std::cell::RefCell;
use std::collections::VecDeque;

use amdhip64::command::Command;
use amdhip64::convert::{Event, Ptr};
use amdhip64::stream::host_functions::Next as Step;
use amdhip64::stream::mirror::{Origin, RegionInfo};
use amdhip64::stream::{Call, Next, WaitCall};
use amdhip64::worker::{ChangesAnswer, HostMemory, Port, Wait};
use hipr_abi::{hipStreamCaptureModeGlobal, hipStreamCaptureModeRelaxed};
use hipr_proto::op::{MemChangesReply, PageRun};
use hipr_proto::{HipError, Wire};
use script::{
    EVENT, HOST, LEGACY, LEN, NON_BLOCKING, Process, REMOTE, STREAM, drive, host_function, kernel, launch,
    launched,
};

#[test]
fn the_common_launch_has_one_phase() {
    let process = Process::new();
    for stream in [LEGACY, STREAM, NON_BLOCKING] {
        let mut call = launch(stream);
        assert!(matches!(process.next(&mut call), Next::Done(Ok(()))), "nothing stands before it");
        assert_eq!(process.script.taken(), [launched(stream)]);
    }
}

#[test]
fn a_launch_that_the_connection_refuses_fails_in_its_phase() {
    let mut process = Process::new();
    process.script.refuses = Some(HipError::CONTEXT_IS_DESTROYED);
    assert!(matches!(process.next(&mut launch(STREAM)), Next::Done(Err(HipError::CONTEXT_IS_DESTROYED))));
}

/// What stands before a launch on [`STREAM`].
#[derive(Clone, Copy, Debug, PartialEq)]
enum Before {
    Nothing,
    /// A capture of this stream, or of the other.
    Capture(u64),
    /// An unfinished host function on this stream.
    Function(u64),
    Mirror,
}

/// Every pair of what can stand before a launch has the outcome of the rules: a capture records, else a function holds, and what is
/// sent at last is sent behind the changes of mirrored memory.
#[test]
fn capture_hold_and_mirror_are_asked_in_this_order_when_they_matter() {
    use Before::{Capture, Function, Mirror, Nothing};
    let first = [Nothing, Capture(STREAM), Capture(NON_BLOCKING)];
    let second = [Nothing, Function(STREAM), Function(LEGACY), Function(NON_BLOCKING)];
    let third = [Nothing, Mirror];
    for (capture, function, mirror) in
        first.iter().flat_map(|a| second.iter().flat_map(move |b| third.map(|c| (*a, *b, c))))
    {
        let case = format!("{capture:?}, {function:?}, {mirror:?}");
        let process = Process::new();
        let streams = &process.streams;
        if let Function(stream) = function {
            assert_eq!(process.log(&mut Call::new(host_function(), stream, false)).len(), 1, "{case}");
        }
        if let Capture(stream) = capture {
            let is_blocking = stream == STREAM;
            streams
                .graphs
                .begin(1, stream, is_blocking, hipStreamCaptureModeGlobal, None)
                .expect("a capture");
        }
        if mirror == Mirror {
            let (origin, host) = (Origin::Managed, Ptr(HOST));
            let info = RegionInfo { origin, host, len: LEN, flags: 0, device: 0 };
            streams.mirrors.add(info, REMOTE, None);
            process.script.write_host(host, &[3]);
        }

        let mut call = launch(STREAM);
        let phases = process.make(&mut call);
        assert_eq!(phases.1, Ok(()), "{case}");
        let log = process.script.taken();
        let is_recorded = capture == Capture(STREAM);
        let is_held = !is_recorded && matches!(function, Function(STREAM | LEGACY));
        let mut sent = Vec::new();
        if mirror == Mirror {
            sent.push(format!("fill 64 at {REMOTE:#x} on {STREAM:#x}"));
            sent.push(format!("write 64 bytes to {REMOTE:#x} on {STREAM:#x}"));
        }
        sent.push(launched(STREAM));
        let expected = match function {
            _ if is_recorded => Vec::new(),
            Function(LEGACY) if is_held => vec![format!("start a thread for {STREAM:#x}")],
            _ if is_held => Vec::new(),
            _ => sent.clone(),
        };
        assert_eq!(log, expected, "{case}");
        let is_common = (capture, function, mirror) == (Nothing, Nothing, Nothing);
        assert_eq!(phases.0.len() == 1, is_common || is_recorded, "{case}: {phases:?}");

        if let Capture(stream) = capture {
            let graph = streams.graphs.end(1, stream).expect("a graph");
            let nodes = streams.graphs.with(|tables| tables.graphs.node_count(graph));
            assert_eq!(nodes, Ok(usize::from(is_recorded)), "{case}");
        }
        if let Function(stream) = function {
            // A function that is queued alone is behind what its stream has.
            let waited = process.step(stream).expect("the function is the first step");
            let fetched: &[&str] = match stream {
                // Its stream is put behind what the legacy stream has, which is nothing that could fail.
                STREAM | LEGACY => &["create an event", "record 0xe111 on", "wait in order"],
                // It has nothing to do with the launch.
                _ => &["flush"],
            };
            let is_right =
                waited.iter().map(String::as_str).zip(fetched).all(|(line, begin)| line.starts_with(begin));
            assert!(
                is_right && waited.len() == fetched.len(),
                "{case}: nothing can still fail before it: {waited:?}"
            );
            assert_eq!(process.step(STREAM), is_held.then_some(sent), "{case}");
        }
    }
}

/// The phases of a host function, and of the launch behind it.
#[test]
fn a_step_waits_for_its_stream_before_its_function_is_called() {
    let process = Process::new();
    assert_eq!(process.log(&mut launch(STREAM)), [launched(STREAM)]);
    let log = process.log(&mut Call::new(host_function(), STREAM, false));
    assert_eq!(log, [format!("start a thread for {STREAM:#x}")]);
    assert_eq!(process.log(&mut launch(STREAM)), Vec::<String>::new());
    assert_eq!(process.log(&mut launch(NON_BLOCKING)), [launched(NON_BLOCKING)]);

    let functions = &process.streams.host_functions;
    let Step::Run(step) = functions.next(STREAM) else { panic!("the function is ready") };
    let mut call = Call::held(step.number, step.command, step.stream);
    assert!(matches!(process.next(&mut call), Next::Continue));
    let joined = ["create an event".to_owned(), format!("record 0xe111 on {STREAM:#x}")];
    assert_eq!(process.script.taken(), joined, "the stream is put behind what the legacy stream has");
    assert!(matches!(process.next(&mut call), Next::Wait(Wait::Stream(STREAM))));
    call.resume(Err(HipError::LAUNCH_FAILURE));
    let called = process.next(&mut call);
    let Next::CallHost(_, before) = called else { panic!("{called:?}") };
    assert_eq!(before, Err(HipError::LAUNCH_FAILURE), "the function runs all the same");
    assert!(matches!(functions.next(STREAM), Step::Wait), "the launch waits for the function to return");
    call.resume(before);
    assert!(matches!(process.next(&mut call), Next::Done(Err(HipError::LAUNCH_FAILURE))));
    functions.finished(step.number, Err(HipError::LAUNCH_FAILURE));

    assert_eq!(process.step(STREAM), Some(vec![launched(STREAM)]));
    assert!(matches!(functions.next(STREAM), Step::End));
    let mut wait = WaitCall::new(Wait::Stream(STREAM));
    let ended = drive(&process, &mut wait, Ok(()));
    assert_eq!(ended, (vec![], Err(HipError::LAUNCH_FAILURE)), "it is reported to who waits");
}

#[test]
fn a_timed_launch_records_its_events() {
    let process = Process::new();
    assert_eq!(process.streams.events.info(EVENT).map(|info| info.recorded), Ok(None));
    let log = process.log(&mut Call::new(kernel(7, EVENT), STREAM, false));
    assert_eq!(log, [launched(STREAM)]);
    assert_eq!(process.streams.events.info(EVENT).map(|info| info.recorded), Ok(Some(STREAM)));
    let unknown = process.make(&mut Call::new(kernel(7, Event(1)), STREAM, false));
    assert_eq!(unknown.1, Err(HipError::INVALID_HANDLE), "there is no such event");
    assert_eq!(process.script.taken(), Vec::<String>::new());
}

#[test]
fn a_launch_with_mirrored_memory_sends_it_and_a_wait_fetches_it() {
    let mut process = Process::new();
    process.script.device_byte = 9;
    let info = RegionInfo { origin: Origin::Pinned, host: Ptr(HOST), len: LEN, flags: 0, device: 0 };
    process.streams.mirrors.add(info, REMOTE, None);
    process.script.write_host(Ptr(HOST), &[1]);
    let call = |argument| Call::new(kernel(argument, Event::NULL), STREAM, false);

    assert_eq!(
        process.log(&mut call(5)),
        [launched(STREAM).replace("07", "05")],
        "no kernel knows of the memory"
    );
    let told = process.log(&mut call(HOST as u64));
    let address: Vec<String> = REMOTE.to_le_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].starts_with("fill 64") && told[1].starts_with("write"), "{told:?}");
    assert_eq!(
        told[2],
        format!("launch k [{}] on {STREAM:#x}", address.join(", ")),
        "with the device's address"
    );

    let waits = drive(&process, &mut WaitCall::new(Wait::Stream(STREAM)), Ok(()));
    assert_eq!(waits, (vec![Wait::Stream(STREAM)], Ok(())));
    assert_eq!(process.script.taken(), ["create a stream", "fetch"]);
    assert_eq!(process.script.host_bytes(Ptr(HOST), LEN), vec![9; LEN]);
}

#[test]
fn a_wait_passes_on_what_the_worker_answers() {
    let process = Process::new();
    let cases = [Wait::Device(0), Wait::Stream(STREAM), Wait::QueryStream(STREAM)];
    for (wait, answer) in
        cases.into_iter().flat_map(|wait| [(wait, Ok(())), (wait, Err(HipError::NOT_READY))])
    {
        process.log(&mut launch(STREAM));
        assert_eq!(drive(&process, &mut WaitCall::new(wait), answer), (vec![wait], answer));
    }
    for wait in [Wait::Event(EVENT), Wait::QueryEvent(EVENT)] {
        let ended = drive(&process, &mut WaitCall::new(wait), Err(HipError::NOT_READY));
        assert_eq!(ended, (vec![], Ok(())), "an event that was never recorded has happened");
    }
    assert_eq!(
        process.log(&mut Call::new(Command::Record(EVENT), STREAM, false)),
        ["record 0xe000 on 0x5000"]
    );
    for wait in [Wait::Event(EVENT), Wait::QueryEvent(EVENT)] {
        let ended = drive(&process, &mut WaitCall::new(wait), Err(HipError::NOT_READY));
        assert_eq!(ended, (vec![wait], Err(HipError::NOT_READY)));
    }
}

/// HIP API: a wait for a stream that captures is refused, and spoils the capture.
#[test]
fn a_wait_in_a_capture_does_not_reach_the_worker() {
    let process = Process::new();
    process.log(&mut launch(NON_BLOCKING));
    process.streams.graphs.begin(1, STREAM, true, hipStreamCaptureModeRelaxed, None).expect("a capture");
    let ended = drive(&process, &mut WaitCall::new(Wait::Stream(STREAM)), Ok(()));
    assert_eq!(ended, (vec![], Err(HipError::STREAM_CAPTURE_UNSUPPORTED)));
    let ended = drive(&process, &mut WaitCall::end_of_call(NON_BLOCKING), Ok(()));
    assert_eq!(ended, (vec![Wait::Stream(NON_BLOCKING)], Ok(())));
}

/// An answer that covers so many bytes, with one page of these bytes unless it is none.
fn told(covered: u64, page: Option<(u32, u8)>) -> ChangesAnswer {
    let mut tail = Vec::new();
    if let Some((first, byte)) = page {
        PageRun { first, count: 1, kind: PageRun::BYTES }.put(&mut tail);
        tail.extend([byte; 4096]);
    }
    Ok((MemChangesReply { covered, num_runs: page.iter().len() as u32, is_known: 1 }, tail))
}

#[test]
fn a_wait_asks_until_all_of_a_region_is_told() {
    const PAGES: usize = 3 * 4096;
    let mut process = Process::new();
    let unknown = Ok((MemChangesReply { covered: 0, num_runs: 0, is_known: 0 }, Vec::new()));
    let other = REMOTE + 0x10_0000;
    // In the first wait: a part of the first region and none of the second; the rest of the first. In the second wait: an error for one,
    // a page of the other. In the third one nonsense for one, and the
    // other is not known any more; in the last one nothing.
    process.script.answers = Some(RefCell::new(VecDeque::from([
        told(4096, Some((0, 1))),
        told(PAGES as u64, None),
        told(8192, Some((1, 2))),
        Err(HipError::LAUNCH_FAILURE),
        told(PAGES as u64, Some((1, 3))),
        told(PAGES as u64, Some((3, 9))),
        unknown,
        told(PAGES as u64, None),
    ])));
    process.script.device_byte = 7;
    for (at, remote) in [(HOST, REMOTE), (HOST + PAGES, other)] {
        let info = RegionInfo { origin: Origin::Managed, host: Ptr(at), len: PAGES, flags: 0, device: 0 };
        process.streams.mirrors.add(info, remote, None);
    }
    let launched = process.log(&mut launch(STREAM));
    let expected = [
        format!("watch {PAGES} bytes at {REMOTE:#x}"),
        format!("fill {PAGES} at {REMOTE:#x} on {STREAM:#x}"),
        format!("watch {PAGES} bytes at {other:#x}"),
        format!("fill {PAGES} at {other:#x} on {STREAM:#x}"),
    ];
    assert_eq!(launched[..4], expected, "what is watched becomes zeros then");
    let wait = || drive(&process, &mut WaitCall::new(Wait::Stream(STREAM)), Ok(())).1;
    let host = |at: usize| process.script.host_bytes(Ptr(HOST + at), 1)[0];
    let asked = |address: u64, length: usize| format!("changes of {length} bytes at {address:#x} on 0x9000");
    let both = [asked(REMOTE, PAGES), asked(other, PAGES)];

    assert_eq!(wait(), Ok(()));
    let log = process.script.taken();
    let asked_first: Vec<&String> = log.iter().filter(|line| line.starts_with("changes")).collect();
    assert_eq!(asked_first, [&both[0], &both[1], &asked(REMOTE + 4096, 8192)]);
    assert_eq!([host(0), host(4096), host(8192), host(PAGES)], [1, 0, 2, 0]);

    process.log(&mut launch(STREAM));
    assert_eq!(wait(), Err(HipError::LAUNCH_FAILURE));
    let behind = [vec![format!("{:?}, and", Wait::Stream(STREAM))], both.to_vec()].concat();
    assert_eq!(process.script.taken(), behind);
    assert_eq!(host(PAGES + 4096), 3, "what was told of the other is told once");

    assert_eq!(wait(), Err(HipError::INVALID_VALUE), "no region has a fourth page");
    assert_eq!(process.script.taken(), behind);
    assert_eq!(wait(), Ok(()));
    assert_eq!(process.script.taken(), [both[0].clone(), "fetch".to_owned()], "what is not known is fetched");
    assert_eq!([host(0), host(PAGES), host(2 * PAGES - 1)], [1, 7, 7]);
}

/// The answers to two threads' questions are applied in the order in which the questions were sent, whoever hands them in first, and what
/// the program sends meanwhile is newer than both.
#[test]
fn answers_are_applied_in_the_order_of_their_questions() {
    const PAGES: usize = 4096;
    for hands_in_first in [0, 1] {
        let mut process = Process::new();
        process.script.answers = Some(RefCell::new(VecDeque::from([
            told(PAGES as u64, Some((0, 1))),
            told(PAGES as u64, Some((0, 2))),
        ])));
        let info = RegionInfo { origin: Origin::Managed, host: Ptr(HOST), len: PAGES, flags: 0, device: 0 };
        process.streams.mirrors.add(info, REMOTE, None);
        process.log(&mut launch(STREAM));
        let mut waits = [WaitCall::new(Wait::Stream(STREAM)), WaitCall::new(Wait::Device(0))];
        let next = |waits: &mut [WaitCall; 2], at: usize| loop {
            match waits[at].next(&process.streams, &process.caller()) {
                Next::Continue => {}
                next => return next,
            }
        };
        let questions = [0, 1].map(|at| match next(&mut waits, at) {
            Next::Answer(question) => question,
            other => panic!("{other:?}"),
        });
        process.script.write_host(Ptr(HOST + 8), &[7]);
        process.log(&mut launch(STREAM));
        let later = 1 - hands_in_first;
        process.answer(questions[hands_in_first]);
        waits[hands_in_first].resume(Ok(()));
        let first = next(&mut waits, hands_in_first);
        if hands_in_first == 1 {
            assert!(matches!(first, Next::WaitForAnswers(question) if question == questions[1]), "{first:?}");
            assert_eq!(process.script.host_bytes(Ptr(HOST), 1)[..], [0], "nothing is applied");
            assert!(!process.streams.mirrors.is_answered(questions[1]));
        } else {
            assert!(matches!(first, Next::Done(Ok(()))), "{first:?}");
        }
        process.answer(questions[later]);
        waits[later].resume(Ok(()));
        process.streams.mirrors.wait_for_answers(questions[1]);
        for at in usize::from(hands_in_first == 0)..2 {
            assert!(matches!(next(&mut waits, at), Next::Done(Ok(()))));
        }
        let mut expected = [2; PAGES];
        // The program's word.
        expected[8..12].copy_from_slice(&[7, 0, 0, 0]);
        assert_eq!(process.script.host_bytes(Ptr(HOST), PAGES)[..], expected);
    }
}
