//! Tests of the traffic between library and worker: requests without a reply, threads, devices, forks, the end of a process.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use hipr_proto::{Features, HipError, Opcode, op};
use support::hip::*;
use support::{
    Asked, FakeWorker, Reaction, bytes, easy, finish, is_program, log_lines, program, run, run_counted,
    scripted, tell_test,
};

/// The operations that open a session, in their order.
const OPENING: [Opcode; 4] = [Opcode::INIT, Opcode::OFFER, Opcode::STATIC, Opcode::MEM_LEASE];

/// Returns the operations without those that open and close a session, which may ask for errors at the end.
fn between(asked: &[support::Asked]) -> Vec<Opcode> {
    let mut all: Vec<_> = asked.iter().map(|asked| asked.op).collect();
    if all.ends_with(&[Opcode::DEVICE_SYNCHRONIZE, Opcode::SHUTDOWN]) {
        all.truncate(all.len() - 2);
    }
    all.retain(|op| !OPENING.contains(op) && *op != Opcode::SHUTDOWN);
    all
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_waits_for_nothing() {
    if !is_program() {
        return;
    }
    let mut ptr = null_mut();
    // SAFETY: C calls with good pointers; a device pointer is only passed on.
    unsafe {
        assert_eq!(hipMalloc(&mut ptr, 4096), 0);
        for value in 0..100 {
            assert_eq!(hipMemset(ptr, value, 4096), 0);
        }
    }
}

#[test]
fn a_program_that_ends_has_said_everything() {
    let worker = FakeWorker::start(easy);
    let (stderr, number) = run_counted(program("program_that_waits_for_nothing", worker.address));
    assert_eq!(log_lines(&stderr), Vec::<&str>::new());

    let asked = worker.until(Opcode::SHUTDOWN);
    assert_eq!([asked[0].op, asked[1].op, asked[2].op, asked[3].op], OPENING);
    let ops = between(&asked);
    assert_eq!(ops[0], Opcode::MALLOC);
    assert_eq!(ops[1..], [Opcode::MEMSET_ASYNC; 100]);
    for (value, asked) in (0..).zip(&asked[OPENING.len() + 1..][..100]) {
        let set = asked.as_op::<op::MemsetAsync>().0;
        assert_eq!((set.dst, set.value, set.size), (0x1000_0000, value, 4096), "in the order of the calls");
    }

    assert_eq!(number("calls"), 101);
    assert_eq!(number("frames_sent"), 106, "INIT, OFFER, STATIC, MEM_LEASE, MALLOC, 100 MEMSET, SHUTDOWN");
    assert_eq!(
        number("frames_received"),
        5,
        "nothing can fail any more, and so nobody waits for the good-bye"
    );
    assert_eq!(number("round_trips"), 2);
    assert_eq!(number("bytes_sent"), 6 * 24 + 16 + 8 + 8 + 12 + 100 * (24 + 28));
    assert_eq!(number("bytes_received"), 5 * (24 + 4) + 8 + 8 + 32 + 8);
}

#[test]
fn the_environment_turns_the_extension_off() {
    let worker = FakeWorker::start(easy);
    let mut command = program("program_that_waits_for_nothing", worker.address);
    command.env("HIPR_EXTENSION", "off");
    let (_, number) = run_counted(command);
    let asked = worker.until(Opcode::SHUTDOWN);
    assert_eq!([asked[0].op, asked[1].op], [Opcode::INIT, Opcode::MALLOC], "as a client of HIPR 1.0");
    assert_eq!((number("frames_sent"), number("round_trips")), (103, 2));
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_synchronizes() {
    if !is_program() {
        return;
    }
    let (mut ptr, mut stream, mut event) = (null_mut(), null_mut(), null_mut());
    let (mut bytes, out) = ([7u8; 64], [0u8; 64]);
    let copied = bytes.as_mut_ptr().cast::<std::ffi::c_void>();
    // SAFETY: C calls with good pointers; device pointers are only passed on.
    unsafe {
        assert_eq!(hipDeviceSynchronize(), 0);
        assert_eq!(hipStreamCreate(&mut stream), 0);
        assert_eq!(hipEventCreate(&mut event), 0);
        assert_eq!(hipMalloc(&mut ptr, 64), 0);
        for _ in 0..3 {
            // Nothing is pending, or only what cannot fail and shows nothing.
            assert_eq!(hipStreamSynchronize(stream), 0);
            assert_eq!(hipMemcpyAsync(ptr, copied, 64, H2D, stream), 0);
            assert_eq!(hipStreamSynchronize(stream), 0);
            assert_eq!(hipMemsetAsync(ptr, 1, 64, stream), 0);
            assert_eq!(hipEventRecord(event, stream), 0);
            assert_eq!(hipEventSynchronize(event), 0);
            assert_eq!(hipStreamQuery(stream), 0);
            // Bytes come back, and all that is before them is over.
            assert_eq!(hipMemcpyAsync(out.as_ptr().cast_mut().cast(), ptr, 64, D2H, stream), 0);
            assert_eq!(hipStreamSynchronize(stream), 0);
            assert_eq!(hipDeviceSynchronize(), 0);
        }
        // Device memory is copied without an answer, and that is waited for once.
        assert_eq!(hipMemcpyAsync(ptr, ptr.cast_const(), 32, D2D, stream), 0);
        assert_eq!(hipStreamSynchronize(stream), 0);
        assert_eq!(hipStreamSynchronize(stream), 0);
    }
}

/// Latency is paid for what the program looks at or can fail, and not for waits.
#[test]
fn a_synchronization_costs_nothing_where_nothing_can_fail() {
    let worker = FakeWorker::start(giving);
    let (stderr, number) = run_counted(program("program_that_synchronizes", worker.address));
    assert_eq!(log_lines(&stderr), Vec::<&str>::new());
    let asked = worker.until(Opcode::SHUTDOWN);
    let (copy, set) = (Opcode::MEMCPY_ASYNC, Opcode::MEMSET_ASYNC);
    let (wait, record) = (Opcode::STREAM_SYNCHRONIZE, Opcode::EVENT_RECORD);
    // A wait that is not answered keeps what comes later behind the work.
    let round = [copy, wait, set, record, Opcode::EVENT_SYNCHRONIZE, copy];
    let made = [Opcode::STREAM_CREATE, Opcode::EVENT_CREATE, Opcode::MALLOC];
    assert_eq!(between(&asked), [&made[..], &round.repeat(3), &[copy, wait]].concat());
    assert_eq!(
        number("round_trips"),
        1 + 3 + 3 + 1,
        "INIT, what is made, a copy of each round, the last wait"
    );
}

#[test]
#[ignore = "a program that other tests run"]
fn program_with_an_impossible_number_of_devices() {
    if !is_program() {
        return;
    }
    let mut count = 7;
    // SAFETY: C calls with good pointers.
    unsafe {
        assert_eq!(hipGetDeviceCount(&mut count), HipError::UNKNOWN.0);
        assert_eq!(hipSetDevice(0), HipError::UNKNOWN.0);
    }
    assert_eq!(count, 0);
}

#[test]
fn a_number_of_devices_that_no_machine_has_is_an_error() {
    for count in [-1, i32::MAX] {
        let worker = FakeWorker::start(move |asked| match asked.op {
            Opcode::GET_DEVICE_COUNT => Reaction::Good(support::bytes(&op::GetDeviceCountReply { count })),
            _ => easy(asked),
        });
        let stderr = run(program("program_with_an_impossible_number_of_devices", worker.address));
        assert!(stderr.contains(&format!("{count} devices")), "{stderr}");
    }
}

/// Frees memory as programs do in destructors, which run when the main thread's thread-local data is gone.
extern "C" fn at_the_end() {
    let mut ptr = null_mut();
    // SAFETY: C calls with good pointers.
    let results = unsafe { [hipMalloc(&mut ptr, 1), hipFree(ptr), hipDeviceSynchronize()] };
    assert_eq!(results, [0; 3]);
}

const STREAMS: usize = 3;
const EVENTS: usize = 33;

#[test]
#[ignore = "a program that other tests run"]
fn program_that_makes_streams_and_events() {
    if !is_program() {
        return;
    }
    let (mut streams, mut events) = ([null_mut(); STREAMS], [null_mut(); EVENTS]);
    let (mut flags, mut priority) = (7, 7);
    const INVALID_VALUE: i32 = 1;
    // SAFETY: C calls with good pointers, or null where that is refused.
    unsafe {
        for stream in &mut streams {
            assert_eq!(hipStreamCreateWithFlags(stream, 1), 0);
        }
        for event in &mut events {
            assert_eq!(hipEventCreate(event), 0);
            assert_eq!(hipEventRecord(*event, streams[0]), 0);
        }
        // What is wrong is refused at once.
        assert_eq!(hipStreamCreate(null_mut()), INVALID_VALUE);
        assert_eq!(hipStreamCreateWithFlags(&mut streams[0], 2), INVALID_VALUE);
        assert_eq!(hipEventCreate(null_mut()), INVALID_VALUE);
        assert_eq!(hipEventCreateWithFlags(&mut events[0], 1 << 20), INVALID_VALUE);
        for stream in streams {
            assert_eq!((hipStreamGetFlags(stream, &mut flags), flags), (0, 1));
            assert_eq!((hipStreamGetPriority(stream, &mut priority), priority), (0, 0));
        }
        events.iter().for_each(|event| assert_eq!(hipEventDestroy(*event), 0));
        assert_eq!(hipEventCreate(&mut events[0]), 0);
    }
}

#[test]
fn streams_and_events_are_not_waited_for_where_the_client_names_them() {
    let last = Arc::new(AtomicU64::new(0x1000));
    let accepted = |features: Features| {
        let last = Arc::clone(&last);
        let next = move || last.fetch_add(1, Ordering::Relaxed);
        move |asked: &Asked| match asked.op {
            Opcode::OFFER => Reaction::Good(bytes(&op::OfferReply { features: features.bits() })),
            // Handles that differ.
            Opcode::STREAM_CREATE => Reaction::Good(bytes(&op::StreamCreateReply { stream: next() })),
            Opcode::EVENT_CREATE => Reaction::Good(bytes(&op::EventCreateReply { event: next() })),
            _ => easy(asked),
        }
    };
    let run = |features| {
        let worker = FakeWorker::start(accepted(features));
        let command = program("program_that_makes_streams_and_events", worker.address);
        let (stderr, number) = run_counted(command);
        assert_eq!(log_lines(&stderr), Vec::<&str>::new());
        (worker.until(Opcode::SHUTDOWN), number("round_trips"))
    };
    let (asked, round_trips) = run(Features::NAMES);
    assert_eq!(round_trips, 2, "INIT, GET_DEVICE_COUNT");
    let made = |op: &Opcode| op.makes().is_some();
    let mut names = Vec::new();
    for pair in asked.windows(2).filter(|pair| made(&pair[1].op)) {
        names.push(pair[0].as_op::<op::Name>().name);
    }
    assert_eq!(names.len(), STREAMS + EVENTS + 1, "each has a name");
    let places: Vec<_> =
        names.iter().map(|name| op::ClientName::of(*name).expect("a name").place()).collect();
    assert_eq!(places[..STREAMS + EVENTS], (0..STREAMS + EVENTS).collect::<Vec<_>>());
    assert!(places[STREAMS + EVENTS] >= STREAMS, "the place of an event that is gone");
    assert!(names.is_sorted(), "names rise");
    let recorded = asked.iter().filter(|asked| asked.op == Opcode::EVENT_RECORD);
    let recorded: Vec<_> = recorded.map(|asked| asked.as_op::<op::EventRecord>().event).collect();
    assert_eq!(recorded, names[STREAMS..STREAMS + EVENTS], "they are used by name");

    let (asked, round_trips) = run(Features::NONE);
    assert!(asked.iter().all(|asked| asked.op != Opcode::NAME), "a worker without the feature gets no names");
    assert_eq!(round_trips, 1 + (STREAMS + EVENTS + 1) as u64, "INIT, and each that is made");
}

#[test]
#[ignore = "a program that other tests run"]
fn program_whose_events_cannot_be_made() {
    if !is_program() {
        return;
    }
    let mut event = null_mut();
    const INVALID_VALUE: i32 = 1;
    const INVALID_HANDLE: i32 = 400;
    // SAFETY: C calls with good pointers.
    unsafe {
        assert_eq!(hipEventCreate(&mut event), 0, "nothing is known of it yet");
        assert_eq!(hipEventRecord(event, null_mut()), 0);
        assert_eq!(hipDeviceSynchronize(), INVALID_VALUE, "the error of its creation, and not of its use");
        assert_eq!(hipDeviceSynchronize(), 0, "once");
        assert_eq!(hipEventRecord(event, null_mut()), 0);
        assert_eq!(hipDeviceSynchronize(), INVALID_HANDLE, "it does not exist");
        assert_eq!(hipEventDestroy(event), 0);
        assert_eq!(hipDeviceSynchronize(), INVALID_HANDLE);
        // The next one has its place.
        assert_eq!(hipEventCreate(&mut event), 0);
        assert_eq!(hipEventRecord(event, null_mut()), 0);
        assert_eq!(hipEventSynchronize(event), 0);
        assert_eq!(hipDeviceReset(), 0);
        let mut stream = null_mut();
        assert_eq!(hipStreamCreate(&mut stream), 0);
        assert_eq!(hipStreamSynchronize(stream), 0);
    }
}

#[test]
fn the_error_of_an_event_that_cannot_be_made_comes_with_the_next_answer() {
    let (worker, script) = scripted();
    script.fail_next("event_create", HipError::INVALID_VALUE);
    run(program("program_whose_events_cannot_be_made", worker.local_addr()));
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_looks_at_nothing() {
    if !is_program() {
        return;
    }
    let mut ptr = null_mut();
    // SAFETY: C calls with good pointers; a device pointer is only passed on.
    unsafe {
        assert_eq!(hipMalloc(&mut ptr, 4096), 0);
        assert_eq!(hipMemcpyAsync(ptr, ptr.cast_const(), 64, D2D, null_mut()), 0);
    }
}

#[test]
fn an_error_that_no_call_has_reported_is_logged_at_the_end() {
    for error in [None, Some(HipError::LAUNCH_FAILURE)] {
        let worker = FakeWorker::start(move |asked| match (asked.op, error) {
            (Opcode::DEVICE_SYNCHRONIZE, Some(error)) => Reaction::Bad(error),
            _ => easy(asked),
        });
        let (stderr, number) = run_counted(program("program_that_looks_at_nothing", worker.address));
        let logged = log_lines(&stderr);
        assert_eq!(logged.len(), usize::from(error.is_some()), "{stderr}");
        assert!(logged.iter().all(|line| line.contains("hipErrorLaunchFailure")), "{stderr}");
        assert_eq!(number("round_trips"), 3, "INIT, MALLOC, and the good-bye with the question before it");
        let ops: Vec<_> = worker.until(Opcode::SHUTDOWN).iter().map(|asked| asked.op).collect();
        assert!(ops.ends_with(&[Opcode::DEVICE_SYNCHRONIZE, Opcode::SHUTDOWN]), "{ops:?}");
    }
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_goes_on_at_its_end() {
    if !is_program() {
        return;
    }
    let mut ptr = null_mut();
    // SAFETY: C calls with good pointers; the function is there as long as the program.
    unsafe {
        assert_eq!(hipMalloc(&mut ptr, 1), 0);
        assert_eq!(libc::atexit(at_the_end), 0);
    }
}

#[test]
fn a_full_log_reaches_to_the_end_of_the_program() {
    let worker = FakeWorker::start(easy);
    let mut command = program("program_that_goes_on_at_its_end", worker.address);
    command.env("HIPR_LOG", "trace");
    let stderr = run(command);
    let lines = log_lines(&stderr);
    assert_eq!(lines.iter().filter(|line| **line == "hipr: trace: hipMalloc").count(), 2, "{stderr}");
    assert!(lines.contains(&"hipr: trace: hipDeviceSynchronize"), "{stderr}");
    worker.until(Opcode::SHUTDOWN);
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_launches_and_sleeps() {
    if !is_program() {
        return;
    }
    let mut ptr = null_mut();
    // SAFETY: C calls with good pointers; a device pointer is only passed on.
    unsafe {
        assert_eq!(hipMalloc(&mut ptr, 4096), 0);
        assert_eq!(hipMemset(ptr, 1, 4096), 0);
    }
    tell_test();
}

#[test]
fn what_nobody_waits_for_leaves_all_the_same() {
    let worker = FakeWorker::start(easy);
    let mut child = program("program_that_launches_and_sleeps", worker.address).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.as_mut().expect("piped")).lines();
    assert!(lines.any(|line| line.is_ok_and(|line| line == "ready")), "the program is past its calls");
    // The program sleeps until it is told to go on, and the request arrives.
    let asked = worker.until(Opcode::MEMSET_ASYNC);
    assert_eq!(between(&asked), [Opcode::MALLOC, Opcode::MEMSET_ASYNC]);
    child.stdin.take().expect("piped").write_all(b"go").expect("the program reads");
    drop(lines);
    assert!(child.wait().expect("it ends").success());
}

#[test]
#[ignore = "a program that other tests run"]
fn program_with_two_devices() {
    if !is_program() {
        return;
    }
    let (mut ptr, mut device) = (null_mut(), -1);
    // SAFETY: C calls with good pointers.
    unsafe {
        assert_eq!(hipSetDevice(2), 101, "hipErrorInvalidDevice: there are two");
        assert_eq!(hipSetDevice(1), 0);
        assert_eq!(hipSetDevice(0), 0);
        assert_eq!(hipSetDevice(1), 0);
        assert_eq!((hipGetDevice(&mut device), device), (0, 1));
        assert_eq!(hipMalloc(&mut ptr, 1), 0);
        assert_eq!(hipMalloc(&mut ptr, 2), 0);
        let other = thread::spawn(|| {
            let mut device = -1;
            assert_eq!((hipGetDevice(&mut device), device), (0, 0), "a thread begins with device 0");
            let mut ptr = null_mut();
            assert_eq!(hipMalloc(&mut ptr, 3), 0);
            assert_eq!(
                hipMalloc(&mut ptr, usize::MAX),
                999,
                "no memory has the address that the worker gives it"
            );
        });
        other.join().expect("no panic");
        assert_eq!(hipMalloc(&mut ptr, 4), 0);
    }
}

#[test]
fn the_worker_is_told_of_a_device_when_it_matters() {
    let worker = FakeWorker::start(easy);
    run(program("program_with_two_devices", worker.address));
    let mut seen = Vec::new();
    for asked in worker.until(Opcode::SHUTDOWN) {
        match asked.op {
            Opcode::SET_DEVICE => seen.push(("device", asked.as_op::<op::SetDevice>().device_id as u64)),
            Opcode::MALLOC => seen.push(("malloc", asked.as_op::<op::Malloc>().size)),
            Opcode::GET_DEVICE_COUNT => seen.push(("count", 0)),
            _ => {}
        }
    }
    assert_eq!(
        seen,
        [
            ("count", 0),
            ("device", 1),
            ("malloc", 1),
            ("malloc", 2),
            ("device", 0),
            ("malloc", 3),
            ("malloc", u64::MAX),
            ("device", 1),
            ("malloc", 4),
        ]
    );
}

/// Forks a child that runs `child` and ends without the test harness's exit.
fn fork(child: impl FnOnce()) {
    // SAFETY: the child only uses this library, which is made for it, and what allocates memory, which the C library
    // prepares for forks.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let went_well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child)).is_ok();
        // SAFETY: ends the process as a program does.
        unsafe { libc::exit(i32::from(!went_well)) };
    }
    let mut status = 0;
    // SAFETY: waits for the child from above.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "the child ended well: {status:#x}");
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_forks_first() {
    if !is_program() {
        return;
    }
    let allocate = |size| {
        let mut ptr = null_mut();
        // SAFETY: a C call with a good pointer.
        assert_eq!(unsafe { hipMalloc(&mut ptr, size) }, 0);
    };
    fork(|| allocate(1));
    allocate(2);
}

#[test]
fn a_child_that_forked_before_the_first_call_has_a_session() {
    let worker = FakeWorker::start(easy);
    run(program("program_that_forks_first", worker.address));
    let mut seen = worker.until(Opcode::SHUTDOWN);
    seen.extend(worker.until(Opcode::SHUTDOWN));
    let sizes: Vec<_> = seen
        .iter()
        .filter(|asked| asked.op == Opcode::MALLOC)
        .map(|asked| (asked.connection, asked.as_op::<op::Malloc>().size))
        .collect();
    assert_eq!(sizes, [(0, 1), (1, 2)]);
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_forks_later() {
    if !is_program() {
        return;
    }
    let mut ptr = null_mut();
    // SAFETY: C calls with good pointers; device pointers are only passed on.
    unsafe {
        assert_eq!(hipMalloc(&mut ptr, 1), 0);
        assert_eq!(hipMemset(ptr, 5, 1), 0);
        let of_parent = ptr as usize;
        fork(|| {
            let of_parent = of_parent as Ptr;
            assert_eq!(hipFree(of_parent), 1, "memory of the parent is not the child's");
            let mut ptr = null_mut();
            assert_eq!(hipMalloc(&mut ptr, 2), 0);
        });
        assert_eq!(hipMemset(ptr, 6, 1), 0);
        assert_eq!(hipDeviceSynchronize(), 0);
        assert_eq!(hipFree(ptr), 0);
    }
}

#[test]
fn a_child_of_a_program_that_has_a_session_gets_its_own() {
    let worker = FakeWorker::start(easy);
    run(program("program_that_forks_later", worker.address));
    let mut seen = worker.until(Opcode::SHUTDOWN);
    seen.extend(worker.until(Opcode::SHUTDOWN));
    let of = |connection| {
        let all: Vec<_> = seen.iter().filter(|asked| asked.connection == connection).cloned().collect();
        between(&all)
    };
    assert_eq!(
        of(0),
        [
            Opcode::MALLOC,
            Opcode::MEMSET_ASYNC,
            Opcode::MEMSET_ASYNC,
            Opcode::DEVICE_SYNCHRONIZE,
            Opcode::FREE
        ],
        "the parent's requests arrive once, whatever the child does"
    );
    assert_eq!(of(1), [Opcode::MALLOC]);
}

/// Host function that waits until the program has put more work behind it.
extern "C" fn in_the_middle(place: Ptr) {
    // SAFETY: the barrier of the program.
    let place = unsafe { &*place.cast::<std::sync::Barrier>() };
    place.wait();
}

#[test]
#[ignore = "a program that other tests run"]
fn program_with_a_host_function() {
    if !is_program() {
        return;
    }
    let (mut ptr, mut stream) = (null_mut(), null_mut());
    let place = std::sync::Barrier::new(2);
    // SAFETY: C calls with good pointers; device pointers are only passed on.
    unsafe {
        assert_eq!(hipStreamCreate(&mut stream), 0);
        assert_eq!(hipMalloc(&mut ptr, 64), 0);
        assert_eq!(hipMemsetAsync(ptr, 1, 64, stream), 0);
        assert_eq!(hipLaunchHostFunc(stream, None, null_mut()), 1);
        assert_eq!(hipLaunchHostFunc(stream, Some(in_the_middle), (&raw const place).cast_mut().cast()), 0);
        assert_eq!(hipMemsetAsync(ptr, 2, 64, stream), 0);
        assert_eq!(hipStreamQuery(stream), HipError::NOT_READY.0);
        place.wait();
        assert_eq!(hipStreamSynchronize(stream), 0);
    }
}

#[test]
fn host_functions_run_between_the_work_before_and_behind_them() {
    let worker = FakeWorker::start(|asked| match asked.op {
        Opcode::STREAM_CREATE => {
            support::Reaction::Good(support::bytes(&op::StreamCreateReply { stream: 0x77 }))
        }
        _ => easy(asked),
    });
    run(program("program_with_a_host_function", worker.address));
    let asked = worker.until(Opcode::SHUTDOWN);
    assert_eq!(
        between(&asked),
        [
            Opcode::STREAM_CREATE,
            Opcode::MALLOC,
            Opcode::MEMSET_ASYNC,
            // The event puts the stream behind the legacy null stream, whose work the function has to follow.
            Opcode::EVENT_CREATE,
            Opcode::EVENT_RECORD,
            Opcode::STREAM_SYNCHRONIZE,
            Opcode::MEMSET_ASYNC,
            Opcode::STREAM_SYNCHRONIZE,
        ]
    );
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_registers_and_does_nothing() {
    if !is_program() {
        return;
    }
    #[repr(C)]
    struct Wrapper(u32, u32, *const u8, *const u8);
    let image = b"not even an image";
    let wrapper = Wrapper(0x4849_5046, 1, image.as_ptr(), std::ptr::null());
    let key = 0u64;
    // SAFETY: C calls as a compiler emits them.
    unsafe {
        let modules = __hipRegisterFatBinary((&raw const wrapper).cast());
        assert!(!modules.is_null());
        let name = c"kernel".as_ptr();
        let none = null_mut();
        __hipRegisterFunction(
            modules,
            (&raw const key).cast(),
            name,
            name,
            u32::MAX,
            none,
            none,
            none,
            none,
            null_mut(),
        );
        __hipUnregisterFatBinary(modules);
    }
}

#[test]
fn registration_needs_no_worker() {
    let stderr = finish(
        program("program_that_registers_and_does_nothing", support::nobody()).spawn().expect("starts"),
    );
    assert_eq!(log_lines(&stderr), Vec::<&str>::new(), "nothing was looked for");
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_launches_a_graph() {
    if !is_program() {
        return;
    }
    let (mut ptr, mut graph, mut exec, mut node) = (null_mut(), null_mut(), null_mut(), null_mut());
    // SAFETY: C calls with good pointers; a device pointer is only passed on.
    unsafe {
        assert_eq!(hipMalloc(&mut ptr, 4096), 0);
        assert_eq!(hipGraphCreate(&mut graph, 0), 0);
        let mut params =
            MemsetParams { dst: ptr, element_size: 1, height: 1, pitch: 64, value: 0, width: 64 };
        for value in 0..20 {
            params.value = value;
            let before: Ptr = node;
            let count = usize::from(!before.is_null());
            assert_eq!(hipGraphAddMemsetNode(&mut node, graph, &before, count, &params), 0);
        }
        let none = null_mut();
        assert_eq!(hipGraphInstantiate(&mut exec, graph, none, none, 0), 0);
        for _ in 0..10 {
            assert_eq!(hipGraphLaunch(exec, none), 0);
        }
        params.value = 77;
        assert_eq!(hipGraphExecMemsetNodeSetParams(exec, node, &params), 0);
        for _ in 0..2 {
            assert_eq!(hipGraphLaunch(exec, none), 0);
        }
        assert_eq!(hipGraphExecDestroy(exec), 0);
    }
}

#[test]
fn a_graph_that_is_launched_again_is_one_message() {
    let worker = FakeWorker::start(easy);
    run(program("program_that_launches_a_graph", worker.address));
    let asked = worker.until(Opcode::SHUTDOWN);
    let ops = between(&asked);
    let nodes = [Opcode::MEMSET_ASYNC; 20];
    let given = [
        &[Opcode::STREAM_BEGIN_CAPTURE][..],
        &nodes,
        &[Opcode::STREAM_END_CAPTURE, Opcode::GRAPH_INSTANTIATE, Opcode::GRAPH_DESTROY],
    ]
    .concat();
    let launch = Opcode::GRAPH_LAUNCH;
    let want = [
        &[Opcode::MALLOC][..],
        // Once node by node, then given to the worker.
        &nodes,
        &[Opcode::STREAM_CREATE],
        &given,
        &[launch; 9],
        // The same with other parameters.
        &[Opcode::GRAPH_EXEC_DESTROY],
        &nodes,
        &given,
        &[launch, Opcode::GRAPH_EXEC_DESTROY],
    ]
    .concat();
    assert_eq!(ops, want);
    let value = |asked: &support::Asked| asked.as_op::<op::MemsetAsync>().0.value;
    let values: Vec<i32> = asked.iter().filter(|asked| asked.op == Opcode::MEMSET_ASYNC).map(value).collect();
    let (first, changed) = values.split_at(40);
    assert!(first.chunks(20).all(|values| values.iter().copied().eq(0..20)));
    assert!(changed.chunks(20).all(|values| values.iter().copied().eq((0..19).chain([77]))));
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_shares_memory_on_two_streams() {
    if !is_program() {
        return;
    }
    const LEN_BYTES: usize = 4096;
    let (mut device, mut streams) = (null_mut(), [null_mut(); 2]);
    let shared = || {
        let (mut host, mut there) = (null_mut(), null_mut());
        // SAFETY: C calls with good pointers, and memory as long as it was asked for.
        unsafe {
            assert_eq!(hipHostMalloc(&mut host, LEN_BYTES, 0), 0);
            assert_eq!(hipHostGetDevicePointer(&mut there, host, 0), 0);
            host.cast::<u8>().write_bytes(1, LEN_BYTES);
        }
        host
    };
    let use_on = |stream: Ptr, device: Ptr, host: Ptr| {
        // SAFETY: a C call; 4 is hipMemcpyDefault.
        assert_eq!(unsafe { hipMemcpyAsync(device, host, LEN_BYTES, 4, stream) }, 0);
    };
    // SAFETY: C calls with good pointers.
    unsafe {
        assert_eq!(hipMalloc(&mut device, LEN_BYTES), 0);
        streams.iter_mut().for_each(|stream| assert_eq!(hipStreamCreate(stream), 0));
    }
    use_on(streams[0], device, shared());
    use_on(streams[1], device, shared());
}

/// Reacts as a worker that allocates handles and pinned memory.
fn giving(asked: &support::Asked) -> Reaction {
    static COUNT: AtomicU64 = AtomicU64::new(100);
    let number = || COUNT.fetch_add(1, Ordering::Relaxed);
    match asked.op {
        Opcode::STREAM_CREATE | Opcode::EVENT_CREATE => Reaction::Good(number().to_le_bytes().into()),
        Opcode::MEMCPY_ASYNC if asked.as_op::<op::MemcpyAsync>().0.kind == D2H => {
            Reaction::GoodWith(Vec::new(), vec![0; 64])
        }
        Opcode::MALLOC_HOST => Reaction::Good((number() << 32).to_le_bytes().into()),
        _ => easy(asked),
    }
}

#[test]
fn changes_of_shared_memory_come_after_those_that_left_on_other_streams() {
    let worker = FakeWorker::start(giving);
    run(program("program_that_shares_memory_on_two_streams", worker.address));
    let asked = worker.until(Opcode::SHUTDOWN);
    // What is done, and on which stream.
    let mut done = Vec::new();
    for asked in &asked {
        let stream = match asked.op {
            Opcode::MEMSET_ASYNC => asked.as_op::<op::MemsetAsync>().0.stream,
            Opcode::MEMCPY_ASYNC => asked.as_op::<op::MemcpyAsync>().0.stream,
            Opcode::EVENT_RECORD => asked.as_op::<op::EventRecord>().stream,
            Opcode::STREAM_WAIT_EVENT => asked.as_op::<op::StreamWaitEvent>().stream,
            _ => continue,
        };
        done.push((asked.op, stream));
    }
    let (set, copy) = (Opcode::MEMSET_ASYNC, Opcode::MEMCPY_ASYNC);
    let after = |stream, other| [(Opcode::EVENT_RECORD, other), (Opcode::STREAM_WAIT_EVENT, stream)];
    let [first, second] = [done[2].1, done[done.len() - 1].1];
    assert!(first != 0 && second != 0 && first != second);
    let want = [
        &[(set, 0)][..],
        &after(first, 0),
        &[(copy, first); 2],
        &after(0, first),
        &[(set, 0)],
        &after(second, 0),
        &[(copy, second); 2],
    ]
    .concat();
    assert_eq!(done, want);
}
