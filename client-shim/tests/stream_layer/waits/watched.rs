//! Queries of what the worker tells the end of: which of them ask it, and what is answered here.

use super::*;

const READY: Result<(), HipError> = Ok(());
const NOT_READY: Result<(), HipError> = Err(HipError::NOT_READY);

/// A process whose worker tells.
fn process() -> Process {
    let mut process = super::process();
    process.script.can_watch = true;
    process
}

impl Process {
    /// Makes a query; returns what asked the worker, which gives this answer, and the result.
    fn query(&self, query: Wait, answer: Result<(), HipError>) -> (Vec<Wait>, Result<(), HipError>) {
        drive(self, &mut WaitCall::new(query), answer)
    }

    /// Makes a query that asks nobody.
    fn known(&self, query: Wait) -> Result<(), HipError> {
        let (asked, result) = self.query(query, Err(HipError::UNKNOWN));
        assert_eq!(asked, [], "{query:?}");
        result
    }

    fn put_and_record(&self, event: Event, stream: u64) {
        self.put(Work::Kernel, stream);
        self.call(Command::Record(event), stream);
    }
}

#[test]
fn the_first_query_asks_and_later_ones_know() {
    for stream in STREAMS {
        let queries = [Wait::QueryStream(stream), Wait::QueryEvent(AFTER)];
        for (query, watch) in
            queries.into_iter().zip([Wait::WatchStream(stream, 1), Wait::WatchEvent(AFTER, 1)])
        {
            let process = process();
            process.put_and_record(AFTER, stream);
            assert_eq!(process.query(query, NOT_READY), (vec![watch], NOT_READY));
            for _ in 0..3 {
                process.script.taken();
                assert_eq!(process.known(query), NOT_READY);
                assert_eq!(
                    process.script.taken(),
                    ["flush"],
                    "what is buffered is on its way while the program asks"
                );
            }
            process.streams.watch_is_over(2, None);
            assert_eq!(process.known(query), NOT_READY, "nobody has asked for the second");
            process.streams.watch_is_over(1, None);
            assert_eq!((process.known(query), process.known(query)), (READY, READY));
            // It has told of no errors.
            check(&process, Left::Open, Wait::Stream(stream), "after a query");
        }
    }
}

#[test]
fn what_was_done_when_it_was_asked_is_known() {
    let process = process();
    process.put_and_record(AFTER, STREAM);
    assert_eq!(process.query(Wait::QueryEvent(AFTER), READY), (vec![Wait::WatchEvent(AFTER, 1)], READY));
    assert_eq!(process.known(Wait::QueryEvent(AFTER)), READY);
    process.put(Work::Kernel, STREAM);
    assert_eq!(process.known(Wait::QueryEvent(AFTER)), READY, "later work is none of the event's");
    let watch = Wait::WatchStream(STREAM, 2);
    assert_eq!(process.query(Wait::QueryStream(STREAM), NOT_READY), (vec![watch], NOT_READY));
}

#[test]
fn what_comes_behind_an_event_waits_for_it() {
    let process = process();
    process.put_and_record(BEFORE, STREAM);
    let watch = Wait::WatchEvent(BEFORE, 1);
    assert_eq!(process.query(Wait::QueryEvent(BEFORE), NOT_READY), (vec![watch], NOT_READY));
    process.put_and_record(AFTER, STREAM);
    for query in [Wait::QueryEvent(AFTER), Wait::QueryStream(STREAM), Wait::QueryStream(LEGACY)] {
        assert_eq!(process.known(query), NOT_READY, "{query:?}");
    }
    process.put(Work::Kernel, OTHER);
    let watch = Wait::WatchStream(OTHER, 2);
    assert_eq!(process.query(Wait::QueryStream(OTHER), READY), (vec![watch], READY), "another stream");
    process.streams.watch_is_over(1, None);
    assert_eq!(process.known(Wait::QueryEvent(BEFORE)), READY);
    let watch = Wait::WatchEvent(AFTER, 3);
    assert_eq!(process.query(Wait::QueryEvent(AFTER), NOT_READY), (vec![watch], NOT_READY));
}

/// A stream that is watched may never be idle, so that its events are asked for by themselves.
#[test]
fn a_stream_answers_for_itself_alone() {
    let process = process();
    process.put(Work::Kernel, STREAM);
    let watch = Wait::WatchStream(STREAM, 1);
    assert_eq!(process.query(Wait::QueryStream(STREAM), NOT_READY), (vec![watch], NOT_READY));
    process.put_and_record(AFTER, STREAM);
    assert_eq!(process.known(Wait::QueryStream(STREAM)), NOT_READY);
    let watch = Wait::WatchEvent(AFTER, 2);
    assert_eq!(process.query(Wait::QueryEvent(AFTER), READY), (vec![watch], READY));
    // What came later is not what was told of.
    process.streams.watch_is_over(1, None);
    process.put(Work::Kernel, STREAM);
    let watch = Wait::WatchStream(STREAM, 3);
    assert_eq!(process.query(Wait::QueryStream(STREAM), NOT_READY), (vec![watch], NOT_READY));
}

/// A way to end a watch, by name.
type End = (&'static str, fn(&Process));

/// Whatever ends a watch without success lets the next query ask.
#[test]
fn a_watch_that_ends_otherwise_says_nothing() {
    let ends: &[End] = &[
        ("a query would fail", |process| process.streams.watch_is_over(1, Some(HipError::INVALID_HANDLE))),
        ("it is not watched", |process| process.streams.watch_is_over(1, Some(HipError::NOT_READY))),
        ("recorded anew", |process| process.call(Command::Record(AFTER), STREAM)),
        ("recorded anew on another stream, whose work is told of", |process| {
            process.put_and_record(AFTER, OTHER);
            process.streams.watch_is_over(1, None);
        }),
        ("recorded by a kernel", |process| process.call(kernel(7, AFTER), STREAM)),
        ("destroyed, and made anew", |process| {
            process.call(Command::DestroyEvent(AFTER), LEGACY);
            process.streams.events.add(AFTER, 0, 0);
            process.put_and_record(AFTER, STREAM);
        }),
        ("the stream was destroyed", |process| {
            process.call(Command::DestroyStream, STREAM);
            process.put_and_record(AFTER, STREAM);
        }),
        ("the device was reset", |process| {
            process.streams.forget_work();
            process.put_and_record(AFTER, STREAM);
        }),
    ];
    for (name, end) in ends {
        let process = process();
        process.put_and_record(AFTER, STREAM);
        let query = Wait::QueryEvent(AFTER);
        assert_eq!(process.query(query, NOT_READY).0, [Wait::WatchEvent(AFTER, 1)]);
        end(&process);
        let again = Wait::WatchEvent(AFTER, 2);
        assert_eq!(process.query(query, NOT_READY), (vec![again], NOT_READY), "{name}");
    }
}

/// Until the worker has answered, nobody knows whether it tells.
#[test]
fn a_query_under_way_answers_no_other() {
    let process = process();
    process.put_and_record(AFTER, STREAM);
    let mut first = WaitCall::new(Wait::QueryEvent(AFTER));
    let asked = std::iter::from_fn(|| match first.next(&process.streams, &process.caller()) {
        Next::Wait(wait) => Some(wait),
        Next::Continue => None,
        other => panic!("{other:?}"),
    });
    assert_eq!(asked.take(1).collect::<Vec<_>>(), [Wait::WatchEvent(AFTER, 1)]);
    let other = Wait::QueryEvent(AFTER);
    assert_eq!(process.query(other, NOT_READY), (vec![other], NOT_READY), "that is watched already");
    let stream = Wait::WatchStream(STREAM, 2);
    assert_eq!(process.query(Wait::QueryStream(STREAM), READY), (vec![stream], READY));
    // Its end may be told before the answer is taken, which is older then.
    process.streams.watch_is_over(1, None);
    first.resume(NOT_READY);
    assert!(matches!(first.next(&process.streams, &process.caller()), Next::Done(NOT_READY)));
    assert_eq!(process.known(other), READY);
}

#[test]
fn what_the_worker_alone_knows_is_asked_each_time() {
    let old = super::process();
    old.put_and_record(AFTER, STREAM);
    let shared = process();
    shared.put_and_record(AFTER, STREAM);
    shared.streams.share();
    for process in [old, shared] {
        for query in [Wait::QueryEvent(AFTER), Wait::QueryStream(STREAM)] {
            for answer in [NOT_READY, NOT_READY, READY, READY] {
                assert_eq!(process.query(query, answer), (vec![query], answer));
            }
        }
    }
    let other = process();
    other.call(Command::Record(SHARED), STREAM);
    let query = Wait::QueryEvent(SHARED);
    assert_eq!(other.query(query, NOT_READY), (vec![query], NOT_READY));
}

/// An answer has the error of whatever request failed before it.
#[test]
fn a_request_that_may_have_failed_is_asked_for() {
    let mut process = process();
    process.put_and_record(AFTER, STREAM);
    let query = Wait::QueryEvent(AFTER);
    assert_eq!(process.query(query, NOT_READY).0, [Wait::WatchEvent(AFTER, 1)]);
    process.script.is_loud = true;
    assert_eq!(process.known(query), NOT_READY);
    process.streams.watch_is_over(1, None);
    let again = Wait::WatchEvent(AFTER, 2);
    assert_eq!(
        process.query(query, Err(HipError::INVALID_VALUE)),
        (vec![again], Err(HipError::INVALID_VALUE))
    );
    process.script.is_loud = false;
    assert_eq!(process.known(query), READY);
}

#[test]
fn no_more_is_watched_than_the_worker_need_take() {
    let process = process();
    let event = |number: usize| Event(0x1_0000 + number);
    let streams = |number: usize| 0x10_0000 + number as u64;
    for number in 0..hipr_proto::op::WATCHES_MAX {
        process.streams.order.add(streams(number), false, 0);
        process.streams.events.add(event(number), 0, 0);
        process.put_and_record(event(number), streams(number));
        let watch = Wait::WatchEvent(event(number), number as u64 + 1);
        assert_eq!(process.query(Wait::QueryEvent(event(number)), NOT_READY), (vec![watch], NOT_READY));
    }
    process.put_and_record(AFTER, STREAM);
    let query = Wait::QueryEvent(AFTER);
    for answer in [NOT_READY, NOT_READY] {
        assert_eq!(process.query(query, answer), (vec![query], answer), "it is asked for each time");
    }
    process.streams.watch_is_over(7, None);
    assert_eq!(process.query(query, NOT_READY).0, [Wait::WatchEvent(AFTER, 65)]);
}

/// A query that says done by itself brings what the device wrote.
#[test]
fn memory_on_both_sides_is_fetched() {
    let process = process();
    process.pin(HOST, true);
    process.call(kernel(HOST as u64, Event::NULL), STREAM);
    let query = Wait::QueryStream(STREAM);
    assert_eq!(process.query(query, NOT_READY).0, [Wait::WatchStream(STREAM, 1)]);
    process.script.taken();
    assert_eq!(process.known(query), NOT_READY);
    assert_eq!(process.script.taken(), ["flush"], "nothing is fetched");
    process.streams.watch_is_over(1, None);
    assert_eq!(process.known(query), READY);
    assert_eq!(process.script.taken(), ["fetch"]);
    assert_eq!(process.known(query), READY);
    assert!(process.script.taken().is_empty(), "once");
}
