//! Tests that `hipMemGetInfo` says the same whether the library asks the worker each time or reckons, and that reckoning waits for
//! nothing.

mod support;

use std::fmt::Write as _;
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hipr_client::{Connection, WorkerAddress};
use hipr_proto::op::{self, MemGetInfoReply, MemInfo, MemLeaseReply, OfferReply};
use hipr_proto::{Features, Opcode, PLACE_PAGE_BYTES};
use hipr_worker::{Config, Handle, Worker};
use support::hip::*;
use support::{FakeWorker, Reaction, bytes, easy, is_program, program, run, run_counted, tell_test};

const MIB: usize = 1 << 20;

/// Starts a worker with an emulated GPU of 64 MiB, which may have limits.
fn emulated(change: impl FnOnce(&mut Config)) -> Handle {
    let memory_bytes = Some(64 << 20);
    let gpu = hipr_sim::Gpu::new(hipr_sim::Config { memory_bytes, ..Default::default() });
    let mut config = Config::new(Arc::new(gpu.expect("the emulated GPU")));
    config.listen = "127.0.0.1:0".into();
    change(&mut config);
    Worker::bind(config).and_then(Worker::spawn).expect("a worker")
}

/// Returns what `hipMemGetInfo` says: error, free and total bytes.
fn info() -> (i32, usize, usize) {
    let (mut free, mut total) = (0, 0);
    // SAFETY: a C call with good pointers.
    let error = unsafe { hipMemGetInfo(&mut free, &mut total) };
    (error, free, total)
}

fn ok(error: i32) {
    assert_eq!(error, 0);
}

fn malloc(size: usize) -> Ptr {
    let mut ptr = null_mut();
    // SAFETY: a C call with a good pointer.
    ok(unsafe { hipMalloc(&mut ptr, size) });
    ptr
}

fn free(ptr: Ptr) {
    // SAFETY: a device pointer is only passed on.
    ok(unsafe { hipFree(ptr) });
}

/// What a program can do between two calls of `hipMemGetInfo`: by name, whether memory is freed later than that, and what it does; it
/// calls the function that it is given wherever it looks at free memory.
type Deed = (&'static str, bool, fn(&mut dyn FnMut()));

// SAFETY: all of these are C calls with good pointers and handles.
const DEEDS: &[Deed] = unsafe {
    &[
        ("hipMalloc and hipFree", false, |look| {
            let (a, b) = (malloc(1000), malloc(3 * MIB));
            look();
            free(a);
            look();
            free(b);
        }),
        ("hipHostMalloc", false, |look| {
            let mut ptr = null_mut();
            ok(hipHostMalloc(&mut ptr, 5000, 0));
            look();
            ok(hipHostFree(ptr));
        }),
        ("hipMallocManaged", false, |look| {
            let mut ptr = null_mut();
            ok(hipMallocManaged(&mut ptr, 5000, 1));
            look();
            free(ptr);
        }),
        ("hipMallocPitch", false, |look| {
            let (mut ptr, mut pitch) = (null_mut(), 0);
            ok(hipMallocPitch(&mut ptr, &mut pitch, 257, 3));
            look();
            free(ptr);
        }),
        ("hipHostRegister", false, |look| {
            let mut memory = vec![0_u8; 3 * MIB];
            ok(hipHostRegister(memory.as_mut_ptr().cast(), memory.len(), 0));
            look();
            ok(hipHostUnregister(memory.as_mut_ptr().cast()));
        }),
        ("hipMallocAsync, hipFree", true, |look| {
            let mut ptr = null_mut();
            ok(hipMallocAsync(&mut ptr, MIB, null_mut()));
            look();
            free(ptr);
        }),
        ("hipMallocAsync, hipFreeAsync, a wait", true, |look| {
            let mut ptr = null_mut();
            ok(hipMallocAsync(&mut ptr, MIB, null_mut()));
            look();
            ok(hipFreeAsync(ptr, null_mut()));
            ok(hipStreamSynchronize(null_mut()));
        }),
        ("hipMalloc, hipFreeAsync, a wait", true, |look| {
            let ptr = malloc(MIB);
            look();
            ok(hipFreeAsync(ptr, null_mut()));
            ok(hipDeviceSynchronize());
        }),
        ("copies, sets, waits, streams, events", false, |look| {
            let (mut stream, mut event, mut back) = (null_mut(), null_mut(), [0_u8; 64]);
            let ptr = malloc(4096);
            ok(hipStreamCreate(&mut stream));
            ok(hipEventCreate(&mut event));
            ok(hipMemsetAsync(ptr, 7, 4096, stream));
            look();
            ok(hipEventRecord(event, stream));
            ok(hipMemcpyAsync(ptr, back.as_ptr().cast(), 64, H2D, stream));
            look();
            ok(hipStreamSynchronize(stream));
            ok(hipMemcpy(back.as_mut_ptr().cast(), ptr, 64, D2H));
            look();
            ok(hipEventDestroy(event));
            ok(hipStreamDestroy(stream));
            look();
            free(ptr);
        }),
        ("a graph", false, |look| {
            let (mut graph, mut node, mut exec) = (null_mut(), null_mut(), null_mut());
            let dst = malloc(4096);
            let fill = MemsetParams { dst, element_size: 1, height: 1, pitch: 64, value: 1, width: 64 };
            ok(hipGraphCreate(&mut graph, 0));
            ok(hipGraphAddMemsetNode(&mut node, graph, core::ptr::null(), 0, &fill));
            ok(hipGraphInstantiate(&mut exec, graph, null_mut(), null_mut(), 0));
            for _ in 0..3 {
                ok(hipGraphLaunch(exec, null_mut()));
                look();
            }
            ok(hipDeviceSynchronize());
            ok(hipGraphExecDestroy(exec));
            free(dst);
        }),
        ("errors that HIP tells at once", false, |look| {
            let mut ptr = null_mut();
            assert_eq!(hipMalloc(&mut ptr, 1 << 40), 2);
            look();
            assert_eq!(hipFree(core::ptr::without_provenance_mut(0x1234)), 1);
            look();
            assert_eq!(hipMemGetInfo(null_mut(), null_mut()), 0);
            let _ = hipGetLastError();
        }),
        ("all that is free, and one byte more", false, |look| {
            let (_, left, _) = info();
            let mut none = null_mut();
            assert_eq!(hipMalloc(&mut none, left + 1), 2);
            look();
            let all = malloc(left);
            look();
            assert_eq!(hipMalloc(&mut none, 1), 2);
            look();
            free(all);
            let _ = hipGetLastError();
        }),
        ("threads", false, |look| {
            let ptrs: Vec<usize> = std::thread::scope(|scope| {
                let threads: Vec<_> = (1..9).map(|n| scope.spawn(move || malloc(n * 1000).addr())).collect();
                threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
            });
            look();
            std::thread::scope(|scope| {
                ptrs.iter()
                    .for_each(|ptr| drop(scope.spawn(|| free(core::ptr::without_provenance_mut(*ptr)))));
            });
        }),
        ("a reset", false, |look| {
            malloc(MIB);
            look();
            ok(hipDeviceReset());
            look();
            let ptr = malloc(MIB);
            look();
            free(ptr);
            look();
        }),
    ]
};

#[test]
#[ignore = "a program that other tests run"]
fn program_that_looks_at_free_memory_all_the_time() {
    if !is_program() {
        return;
    }
    let mut said = String::new();
    let mut look = |name: &str| writeln!(said, "{name}: {:?}", info()).expect("a string grows");
    malloc(777);
    let all = info();
    for (name, is_later, deed) in DEEDS {
        look(name);
        deed(&mut || look(name));
        let end = Instant::now() + Duration::from_secs(20);
        while *is_later && info() != all {
            assert!(Instant::now() < end, "{name}: {:?} instead of {all:?}", info());
        }
        look(name);
    }
    std::fs::write(std::env::var("HIPR_TEST_FILE").expect("a file"), said).expect("a folder");
}

/// Runs the program; returns what it was told of free memory.
fn looks(worker: &Handle, extension: &str) -> String {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let mut program = program("program_that_looks_at_free_memory_all_the_time", worker.local_addr());
    program.env("HIPR_EXTENSION", extension).env("HIPR_TEST_FILE", file.path());
    run(program);
    std::fs::read_to_string(file.path()).expect("what the program wrote")
}

#[test]
fn what_is_reckoned_is_what_the_worker_would_say() {
    type Change = fn(&mut Config);
    let workers: [(&str, Change); 5] = [
        ("", |_| {}),
        ("with a limit", |config| config.session.memory_max_bytes = 20_000_001),
        ("without notifications", |config| {
            config.session.features = config.session.features.map(|all| all.without(Features::NOTIFICATIONS));
        }),
        ("without leases", |config| {
            config.session.features = config.session.features.map(|all| all.without(Features::PLACES));
        }),
        ("an old one", |config| {
            config.session.features = config.session.features.map(|all| all.without(Features::MEM_INFO));
        }),
    ];
    for (name, change) in workers {
        let asked = looks(&emulated(change), "off");
        assert!(asked.lines().count() > 40, "{asked}");
        assert_eq!(looks(&emulated(change), "on"), asked, "a worker {name}");
        // There pinned and managed memory is placed in memory that both sides map.
        let folder = tempfile::tempdir().expect("a folder");
        let path = format!("shm:{}", folder.path().join("socket").display());
        let beside = emulated(|config| {
            change(config);
            config.listen = path.as_str().into();
        });
        assert_eq!(looks(&beside, "on"), asked, "a worker {name} on the same machine");
    }
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_allocates_and_looks() {
    if !is_program() {
        return;
    }
    let times = std::env::var("HIPR_TEST_TIMES").expect("a number").parse().expect("a number");
    let (_, all, _) = info();
    let mut stream = null_mut();
    // SAFETY: C calls with good pointers and handles.
    unsafe {
        ok(hipStreamCreate(&mut stream));
        for n in 1..times {
            let ptr = malloc(n);
            assert_eq!(info().1, all - n);
            ok(hipMemsetAsync(ptr, 1, n, stream));
            free(ptr);
            assert_eq!(info().1, all);
        }
        ok(hipStreamDestroy(stream));
    }
}

#[test]
fn what_is_known_is_not_waited_for() {
    for kind in ["tcp", "unix", "shm"] {
        // Each has a worker of its own: what the last one did not wait for may not be over when it has ended.
        let round_trips = |times: &str| {
            let folder = tempfile::tempdir().expect("a folder");
            let path = format!("{kind}:{}", folder.path().join("socket").display());
            let worker = emulated(|config| {
                if kind != "tcp" {
                    config.listen = path.as_str().into();
                }
            });
            let mut program = program("program_that_allocates_and_looks", worker.local_addr());
            program.env("HIPR_EXTENSION", "on").env("HIPR_TEST_TIMES", times);
            let (_, number) = run_counted(program);
            number("round_trips")
        };
        assert_eq!(round_trips("500"), round_trips("2"), "over {kind}");
    }
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_looks_while_others_allocate() {
    if !is_program() {
        return;
    }
    let (_, all, _) = info();
    let own = malloc(1000);
    for step in 1..=3 {
        tell_test();
        let end = Instant::now() + Duration::from_secs(60);
        // Another process's memory is seen as soon as its news is here.
        while info().1 != all - 1000 - step * MIB {
            assert!(Instant::now() < end, "step {step}: {:?}", info());
        }
    }
    free(own);
    assert_eq!(info().1, all - 3 * MIB);
}

#[test]
fn what_another_session_allocates_is_seen() {
    use std::io::{BufRead, BufReader, Write};
    let worker = emulated(|_| {});
    let mut child = program("program_that_looks_while_others_allocate", worker.local_addr());
    let mut child = child.env("HIPR_EXTENSION", "on").spawn().expect("the program starts");
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let (mut input, output) = (input.expect("a pipe"), BufReader::new(output.expect("a pipe")));
    let address = WorkerAddress::new(&worker.local_addr().to_string());
    let other = Connection::connect(&address, Duration::from_secs(20)).expect("a worker is there");
    for line in output.lines().map_while(Result::ok) {
        if line == "ready" {
            other.ask(&op::Malloc { size: MIB as u64, flags: 0 }).expect("memory");
            input.write_all(b"\n").expect("the program reads");
        }
    }
    assert!(child.wait().expect("a child").success());
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_looks_three_times() {
    if is_program() {
        let ptr = malloc(1000);
        let (first, second) = (info(), info());
        let other = malloc(5000);
        let third = info();
        free(ptr);
        free(other);
        let file = std::env::var("HIPR_TEST_FILE").expect("a file");
        std::fs::write(file, format!("{first:?} {second:?} {third:?}")).expect("a folder");
    }
}

#[test]
fn a_worker_may_say_anything() {
    const MAX: u64 = u64::MAX;
    let start = PLACE_PAGE_BYTES << 20;
    let lease = MemLeaseReply {
        window_start: start,
        window_bytes: 1 << 40,
        added_bytes: 1 << 30,
        added_allocations: 100,
    };
    // What it says is free, what the program then is told, and how often the worker is asked.
    for (free_bytes, third, count) in [(9000, 4000, 1), (1, 1, 2), (MAX, MAX, 3), (MAX - 1000, MAX - 6000, 1)]
    {
        let info = MemGetInfoReply { free_bytes, total_bytes: MAX };
        let features = Features::PLACES.union(Features::NOTIFICATIONS).union(Features::MEM_INFO).bits();
        let worker = FakeWorker::start(move |asked| match asked.op {
            Opcode::OFFER => Reaction::Good(bytes(&OfferReply { features })),
            Opcode::MEM_LEASE => Reaction::Good(bytes(&lease)),
            Opcode::MEM_INFO => Reaction::Good(bytes(&info)),
            _ => easy(asked),
        });
        let file = tempfile::NamedTempFile::new().expect("a file");
        let mut program = program("program_that_looks_three_times", worker.address);
        program.env("HIPR_EXTENSION", "on").env("HIPR_TEST_FILE", file.path());
        run(program);
        let (first, third) = (free_bytes as usize, third as usize);
        let total = MAX as usize;
        let expected = format!("{:?} {:?} {:?}", (0, first, total), (0, first, total), (0, third, total));
        assert_eq!(std::fs::read_to_string(file.path()).expect("text"), expected);
        let asked = worker.until(Opcode::SHUTDOWN);
        let asked: Vec<MemInfo> =
            asked.iter().filter(|asked| asked.op == Opcode::MEM_INFO).map(|asked| asked.as_op()).collect();
        assert_eq!(asked.len(), count, "{free_bytes}: {asked:?}");
        assert!(asked.iter().zip(1..).all(|(info, number)| info.number == number), "each has a number");
    }
}
