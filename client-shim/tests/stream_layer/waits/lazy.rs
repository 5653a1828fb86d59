//! Which lazy waits ask the worker: those for work that can show the program something, and those of a program that is far ahead.

use amdhip64::stream::sync_mode::{AHEAD_MAX_BYTES, AHEAD_REQUESTS_MAX, SyncMode};

use super::*;

const LAZY: SyncMode = SyncMode::Lazy { ahead_max_bytes: AHEAD_MAX_BYTES };

/// Returns what a lazy wait finds of work that its stream has.
fn left(work: Work) -> Left {
    match work {
        // Whatever the device still has may write there, and nothing is fetched that could be waited for instead.
        work if work.is_shared() => work.left(),
        // The device writes where the program can read.
        Work::CopyIntoMirror | Work::FillOfMirror | Work::KernelWithMirror => Left::Open,
        work => work.left().min(Left::Decided),
    }
}

#[test]
fn a_lazy_wait_asks_only_for_work_that_can_show_something() {
    let works = WORK.iter().filter(|work| **work != Work::AwaitShared);
    for (work, on, of) in works
        .flat_map(|work| STREAMS.iter().flat_map(move |on| STREAMS.iter().map(move |of| (*work, *on, *of))))
    {
        let case = format!("{work:?} on {on:#x}");
        for wait in [Wait::Stream(of), Wait::QueryStream(of), Wait::Device(0)] {
            let process = process_in(LAZY);
            process.put(work, on);
            let is_included = wait == Wait::Device(0) || includes(of, on);
            check(&process, if is_included { left(work) } else { Left::Nothing }, wait, &case);
        }
        for wait in [Wait::Event(AFTER), Wait::QueryEvent(AFTER)] {
            let process = process_in(LAZY);
            process.put(work, on);
            process.call(Command::Record(AFTER), on);
            check(&process, left(work).max(Left::Decided), wait, &case);
        }
    }
}

#[test]
fn a_lazy_wait_asks_for_what_other_processes_take_part_in() {
    for wait in [Wait::Device(0), Wait::Stream(STREAM), Wait::QueryStream(STREAM), Wait::Stream(APART)] {
        let process = process_in(LAZY);
        process.put(Work::AwaitShared, STREAM);
        assert_eq!(process.wait(wait).0, [wait]);
    }
    for wait in [Wait::Event(SHARED), Wait::QueryEvent(SHARED)] {
        let process = process_in(LAZY);
        process.put(Work::RecordShared, STREAM);
        assert_eq!(process.wait(wait).0.len(), 1, "{wait:?}");
    }
}

#[test]
fn a_lazy_wait_asks_when_the_program_is_far_ahead() {
    for (ahead, ahead_max_bytes, asks) in [
        ((AHEAD_REQUESTS_MAX, 0), 0, false),
        ((AHEAD_REQUESTS_MAX + 1, 0), u64::MAX, true),
        ((0, 1000), 1000, false),
        ((0, 1001), 1000, true),
        ((0, 1), 0, true),
        ((u64::MAX, u64::MAX), u64::MAX, true),
    ] {
        for (work, may_ask) in [(Work::Kernel, true), (Work::Fill, false), (Work::Nothing, false)] {
            let mut process = process_in(SyncMode::Lazy { ahead_max_bytes });
            process.script.ahead = ahead;
            process.put(work, STREAM);
            let asked = !process.wait(Wait::Stream(STREAM)).0.is_empty();
            assert_eq!(asked, asks && may_ask, "{work:?}, {ahead:?} of {ahead_max_bytes}");
        }
    }
}

/// An error that no reply has told yet comes with a later call that waits.
#[test]
fn a_lazy_wait_does_not_ask_for_errors() {
    for work in [Work::Nothing, Work::Fill, Work::Kernel] {
        let mut process = process_in(LAZY);
        process.script.is_loud = true;
        process.put(work, STREAM);
        let asked = process.wait(Wait::Stream(STREAM));
        assert_eq!(asked, expected(left(work), Wait::Stream(STREAM)), "{work:?}");
    }
}
