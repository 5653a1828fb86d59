//! Tests of the order between streams and events.

mod session;

use std::task::Poll;

use hipr_device::{Context as _, Launch, Region, WaitFor};
use hipr_proto::HipError;
use hipr_sim::SimContext;
use session::{Gate, LEVELS, Session, Values, gpu};

const NON_BLOCKING: u32 = 1;
const DISABLE_TIMING: u32 = 2;
const NOT_READY: Result<(), HipError> = Err(HipError::NOT_READY);

fn fill(session: &mut Session, ptr: u64, value: u32, stream: u64) {
    session.context.fill(Region::flat(ptr, 4), value, 4, stream).unwrap();
}

#[test]
fn streams_are_independent_and_events_connect_them() {
    let gpu = gpu(1);
    let mut session = Session::open(&gpu);
    let [a, b] = [(); 2].map(|()| session.context.stream_create(NON_BLOCKING, 0).unwrap());
    let event = session.context.event_create(0).unwrap();
    let word = session.buffer(&[0]);
    let gate = Gate::close(&mut session, a);
    fill(&mut session, word, 1, a);
    session.context.event_record(event, a).unwrap();
    // b goes on although a is stuck, until it waits for the event.
    let other = session.buffer(&[0]);
    fill(&mut session, other, 5, b);
    session.sync(WaitFor::Stream(b)).unwrap();
    assert_eq!(session.read(other, 1), [5]);
    session.context.stream_wait_event(b, event, 0).unwrap();
    session.context.copy(Region::flat(other, 4), Region::flat(word, 4), b).unwrap();
    for what in [WaitFor::Stream(a), WaitFor::Stream(b), WaitFor::Event(event), WaitFor::Device] {
        assert_eq!(session.context.query(what), NOT_READY, "{what:?}");
    }
    assert_eq!(session.context.query(WaitFor::Stream(0)), Ok(()));
    gate.open(&mut session);
    session.sync(WaitFor::Stream(b)).unwrap();
    assert_eq!(session.read(other, 1), [1]);
    assert_eq!(session.context.query(WaitFor::Event(event)), Ok(()));
}

#[test]
fn the_null_stream_waits_for_blocking_streams_and_they_for_it() {
    let gpu = gpu(2);
    for null in [0, 1] {
        let mut session = Session::open(&gpu);
        let blocking = session.context.stream_create(0, 0).unwrap();
        let other = session.context.stream_create(0, 0).unwrap();
        let free = session.context.stream_create(NON_BLOCKING, 0).unwrap();
        let word = session.buffer(&[0]);
        let gate = Gate::close(&mut session, blocking);
        // Blocking streams do not wait for each other.
        fill(&mut session, word, 1, other);
        session.sync(WaitFor::Stream(other)).unwrap();
        assert_eq!(session.context.query(WaitFor::Stream(null)), NOT_READY);
        assert_eq!(session.context.poll_ready(null), Poll::Pending);
        assert_eq!(session.context.poll_ready(other), Poll::Ready(()));
        // The null stream waits for the stuck one, and a blocking one for the null stream.
        fill(&mut session, word, 2, null);
        assert_eq!(session.context.poll_ready(other), Poll::Pending);
        fill(&mut session, word, 3, other);
        // The per-thread stream is a blocking one; a non-blocking one does not care.
        fill(&mut session, word, 4, 2);
        let apart = session.buffer(&[0]);
        fill(&mut session, apart, 6, free);
        session.sync(WaitFor::Stream(free)).unwrap();
        assert_eq!(session.read(apart, 1), [6]);
        assert_eq!(session.read(word, 1), [1]);
        for stream in [null, other, 2, blocking] {
            assert_eq!(session.context.query(WaitFor::Stream(stream)), NOT_READY, "{stream}");
        }
        gate.open(&mut session);
        session.sync(WaitFor::Stream(null)).unwrap();
        session.sync_all().unwrap();
        assert!(matches!(session.read(word, 1)[..], [3 | 4]));
    }
}

#[test]
fn the_null_stream_does_not_wait_for_non_blocking_streams() {
    let gpu = gpu(1);
    let mut session = Session::open(&gpu);
    let free = session.context.stream_create(NON_BLOCKING, 0).unwrap();
    let gate = Gate::close(&mut session, free);
    let word = session.buffer(&[0]);
    fill(&mut session, word, 1, 0);
    session.sync(WaitFor::Stream(0)).unwrap();
    assert_eq!(session.read(word, 1), [1]);
    gate.open(&mut session);
    session.sync_all().unwrap();
}

#[test]
fn events_mean_their_last_record() {
    let gpu = gpu(1);
    let mut session = Session::open(&gpu);
    let stream = session.context.stream_create(0, 0).unwrap();
    let event = session.context.event_create(0).unwrap();
    // Never recorded: complete, and nothing to wait for.
    assert_eq!(session.context.query(WaitFor::Event(event)), Ok(()));
    assert_eq!(session.sync(WaitFor::Event(event)), Ok(()));
    session.context.stream_wait_event(stream, event, 0).unwrap();
    assert_eq!(session.context.event_elapsed_ms(event, event), Err(HipError::INVALID_HANDLE));
    session.context.event_record(event, stream).unwrap();
    session.sync(WaitFor::Event(event)).unwrap();
    let gate = Gate::close(&mut session, stream);
    assert_eq!(session.context.query(WaitFor::Event(event)), Ok(()));
    session.context.event_record(event, stream).unwrap();
    assert_eq!(session.context.query(WaitFor::Event(event)), NOT_READY);
    assert_eq!(session.context.event_elapsed_ms(event, event), Err(HipError::NOT_READY));
    gate.open(&mut session);
    session.sync(WaitFor::Event(event)).unwrap();
    assert_eq!(session.context.event_elapsed_ms(event, event), Ok(0.0));
    session.context.event_destroy(event).unwrap();
    assert_eq!(session.context.event_destroy(event), Err(HipError::INVALID_HANDLE));
    assert_eq!(session.context.event_record(event, stream), Err(HipError::INVALID_HANDLE));
    assert_eq!(session.context.query(WaitFor::Event(event)), NOT_READY.map_err(|_| HipError::INVALID_HANDLE));
}

#[test]
fn events_take_time_in_stream_order() {
    let gpu = gpu(2);
    let mut session = Session::open(&gpu);
    let [start, middle, stop] = [(); 3].map(|()| session.context.event_create(0).unwrap());
    let untimed = session.context.event_create(DISABLE_TIMING).unwrap();
    let word = session.buffer(&[0]);
    let saxpy = session.kernel(LEVELS[1].1, "place");
    let out = session.malloc(64 * 16);
    session.context.event_record(untimed, 0).unwrap();
    let values = Values::new().u64(out);
    let launch = values.launch(saxpy, [1, 1, 1], [64, 1, 1]);
    session.context.launch(&Launch { start_event: Some(start), stop_event: Some(middle), ..launch }).unwrap();
    fill(&mut session, word, 1, 0);
    session.context.event_record(stop, 0).unwrap();
    session.sync(WaitFor::Event(stop)).unwrap();
    let context = &mut session.context;
    let (kernel, all) =
        (context.event_elapsed_ms(start, middle).unwrap(), context.event_elapsed_ms(start, stop).unwrap());
    assert!(0.0 < kernel && kernel <= all, "{kernel} of {all} ms");
    assert_eq!(context.event_elapsed_ms(stop, start), Ok(-all));
    assert_eq!(context.event_elapsed_ms(start, untimed), Err(HipError::INVALID_HANDLE));
    assert_eq!(context.event_create(0x80), Err(HipError::INVALID_VALUE));
}

#[test]
fn a_destroyed_stream_finishes_its_work() {
    let gpu = gpu(1);
    let mut session = Session::open(&gpu);
    let stream = session.context.stream_create(NON_BLOCKING, -7).unwrap();
    assert_eq!(session.context.stream_flags(stream), Ok(NON_BLOCKING));
    assert_eq!(session.context.stream_priority(stream), Ok(-1));
    let word = session.buffer(&[0]);
    let gate = Gate::close(&mut session, stream);
    fill(&mut session, word, 9, stream);
    session.context.stream_destroy(stream).unwrap();
    let invalid = HipError::INVALID_HANDLE;
    assert_eq!(session.context.stream_destroy(stream), Err(invalid));
    assert_eq!(session.context.fill(Region::flat(word, 4), 1, 4, stream), Err(invalid));
    assert_eq!(session.context.query(WaitFor::Stream(stream)), Err(invalid));
    assert_eq!(session.context.stream_flags(stream), Err(invalid));
    assert_eq!(session.context.query(WaitFor::Device), NOT_READY);
    gate.open(&mut session);
    session.sync_all().unwrap();
    assert_eq!(session.read(word, 1), [9]);
    for always in [0, 1, 2] {
        assert_eq!(session.context.stream_destroy(always), Err(invalid));
        assert_eq!(session.context.stream_flags(always), Ok(0));
    }
    assert_eq!(session.context.stream_create(2, 0), Err(HipError::INVALID_VALUE));
}

#[test]
fn a_free_waits_for_the_work_that_may_use_the_memory() {
    let gpu = gpu(1);
    let mut session = Session::open(&gpu);
    let ptr = session.buffer(&[1, 2, 3, 4]);
    let gate = Gate::close(&mut session, 0);
    let copy = session.malloc(16);
    session.context.copy(Region::flat(copy, 16), Region::flat(ptr, 16), 0).unwrap();
    assert_eq!(session.context.poll_free(ptr), Poll::Pending);
    gate.open(&mut session);
    session.wait(|context| context.poll_free(ptr)).unwrap();
    assert_eq!(session.read(copy, 4), [1, 2, 3, 4]);
}

#[test]
fn an_error_is_told_once_and_to_who_waits_for_its_stream() {
    let gpu = gpu(2);
    let mut session = Session::open(&gpu);
    let [a, b] = [(); 2].map(|()| session.context.stream_create(NON_BLOCKING, 0).unwrap());
    let wild = session.kernel(LEVELS[1].1, "wild");
    let ptr = session.malloc(64);
    let event = session.context.event_create(0).unwrap();
    session.launch_on(a, wild, 1, 64, &Values::new().u64(ptr).u64(1 << 33)).unwrap();
    session.context.event_record(event, a).unwrap();
    fill(&mut session, ptr, 7, a);
    assert_eq!(session.sync(WaitFor::Stream(b)), Ok(()));
    assert_eq!(session.sync(WaitFor::Event(event)), Err(HipError::ILLEGAL_ADDRESS));
    assert_eq!(session.sync(WaitFor::Event(event)), Ok(()));
    assert_eq!(session.sync(WaitFor::Stream(a)), Ok(()));
    assert_eq!(session.sync(WaitFor::Device), Ok(()));
    // What follows in the stream still runs.
    assert_eq!(session.read(ptr, 1), [7]);
    for what in [WaitFor::Stream(a), WaitFor::Device] {
        session.launch_on(a, wild, 1, 64, &Values::new().u64(0).u64(0)).unwrap();
        assert_eq!(session.sync(WaitFor::Stream(b)), Ok(()));
        assert_eq!(session.sync(what), Err(HipError::ILLEGAL_ADDRESS));
        assert_eq!(session.sync(what), Ok(()));
    }
}

/// A small random number generator, so that the same seed gives the same program.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Random programs on several streams, each with a cell of its own, end as if they ran in order. Random commands fill the own
/// cell or copy another stream's one, ordered by events only where the streams' own rules do not order them. The cells must be
/// what they are after the same commands one after another.
#[test]
fn random_programs_end_as_if_they_ran_in_order() {
    let gpu = gpu(3);
    for seed in 0..60 {
        let mut numbers = Numbers(seed);
        let mut session = Session::open(&gpu);
        let context = &mut session.context;
        let mut streams = vec![(0, true), (1, true), (2, true)];
        for flags in [0, 0, NON_BLOCKING, NON_BLOCKING] {
            streams.push((context.stream_create(flags, 0).unwrap(), flags == 0));
        }
        let len = 256 << numbers.below(8);
        let cells: Vec<u64> = streams.iter().map(|_| session.malloc(len)).collect();
        let context = &mut session.context;
        let mut model = vec![0u32; streams.len()];
        let wait = |context: &mut SimContext, waiting: (u64, bool), other: (u64, bool)| {
            let null = |(stream, _): (u64, bool)| stream < 2;
            let ordered = waiting.1 && other.1 && (null(waiting) || null(other));
            if !ordered {
                let event = context.event_create(DISABLE_TIMING).unwrap();
                context.event_record(event, other.0).unwrap();
                context.stream_wait_event(waiting.0, event, 0).unwrap();
                context.event_destroy(event).unwrap();
            }
        };
        for _ in 0..120 {
            let own = numbers.below(streams.len() as u64) as usize;
            let other = numbers.below(streams.len() as u64) as usize;
            let dst = Region::flat(cells[own], len);
            if own == other {
                model[own] = numbers.below(1 << 32) as u32;
                context.fill(dst, model[own], 4, streams[own].0).unwrap();
            } else {
                wait(context, streams[own], streams[other]);
                context.copy(dst, Region::flat(cells[other], len), streams[own].0).unwrap();
                wait(context, streams[other], streams[own]);
                model[own] = model[other];
            }
        }
        session.sync_all().unwrap();
        for (cell, expected) in cells.into_iter().zip(model) {
            assert_eq!(session.read(cell, len as usize / 4), vec![expected; len as usize / 4], "seed {seed}");
        }
    }
}
