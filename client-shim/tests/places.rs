//! Tests memory that the library places itself: no call waits for it, and no result is another than without.

mod support;

use std::ptr::null_mut;

use hipr_client::{Connection, WorkerAddress};
use hipr_proto::op::{self, MemLeaseReply, OfferReply};
use hipr_proto::{Features, Opcode};
use hipr_worker::{Config, Handle, Worker};
use support::hip::*;
use support::{FakeWorker, Reaction, bytes, easy, is_program, log_lines, program, run, run_counted};

const MIB: usize = 1 << 20;
const OUT_OF_MEMORY: i32 = 2;

/// Starts a worker with an emulated GPU of so much memory.
fn emulated(memory_bytes: usize, change: impl FnOnce(&mut Config)) -> Handle {
    let memory_bytes = Some(memory_bytes as u64);
    let gpu = hipr_sim::Gpu::new(hipr_sim::Config { memory_bytes, ..Default::default() });
    let device = std::sync::Arc::new(gpu.expect("the emulated GPU"));
    let mut config = Config { listen: "127.0.0.1:0".into(), ..Config::new(device) };
    change(&mut config);
    Worker::bind(config).and_then(Worker::spawn).expect("a worker")
}

/// Runs a program whose library offers what the environment says; returns its round trips.
fn with_extension(name: &str, worker: impl ToString, extension: &str) -> u64 {
    let mut program = program(name, worker);
    program.env("HIPR_EXTENSION", extension);
    let (stderr, number) = run_counted(program);
    assert_eq!(log_lines(&stderr), Vec::<&str>::new());
    number("round_trips")
}

// The functions as a program calls them that has nothing to hide.

fn malloc(size: usize) -> Result<Ptr, i32> {
    let mut ptr = null_mut();
    // SAFETY: a C call with a good pointer.
    match unsafe { hipMalloc(&mut ptr, size) } {
        0 => Ok(ptr),
        error => Err(error),
    }
}

fn malloc_async(size: usize) -> Result<Ptr, i32> {
    let mut ptr = null_mut();
    // SAFETY: a C call with a good pointer.
    match unsafe { hipMallocAsync(&mut ptr, size, null_mut()) } {
        0 => Ok(ptr),
        error => Err(error),
    }
}

fn free(ptr: Ptr) -> i32 {
    // SAFETY: device pointers are only passed on.
    unsafe { hipFree(ptr) }
}

fn synchronize() {
    // SAFETY: a C call without parameters.
    assert_eq!(unsafe { hipDeviceSynchronize() }, 0);
}

fn free_bytes() -> usize {
    let (mut free, mut total) = (0, 0);
    // SAFETY: a C call with good pointers.
    assert_eq!(unsafe { hipMemGetInfo(&mut free, &mut total) }, 0);
    free
}

/// A generator of numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    /// Returns a size from 16 bytes to 256 MiB, each order of magnitude as often.
    fn size(&mut self) -> usize {
        let size = 16 << self.below(25);
        size - self.below(size / 2)
    }
}

fn allocate_and_free(times: usize) {
    let mut numbers = Numbers(1);
    let mut live = Vec::new();
    for _ in 0..times {
        live.push(malloc(numbers.size()).expect("memory"));
        if live.len() > numbers.below(8) {
            assert_eq!(free(live.swap_remove(numbers.below(live.len()))), 0);
        }
    }
    live.into_iter().for_each(|ptr| assert_eq!(free(ptr), 0));
    synchronize();
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_allocates_once() {
    if is_program() {
        allocate_and_free(1);
    }
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_allocates_ten_thousand_times() {
    if is_program() {
        allocate_and_free(10_000);
    }
}

#[test]
fn allocations_wait_for_nothing() {
    let worker = emulated(8 << 30, |_| {});
    let round_trips = |name| with_extension(name, worker.local_addr(), "on");
    let once = round_trips("program_that_allocates_once");
    assert_eq!(round_trips("program_that_allocates_ten_thousand_times"), once);
    assert_eq!(
        once, 1,
        "the first flight: what is in the lease is there, and the synchronization has nothing to wait for"
    );
}

/// Allocates, fills and frees memory a number of times, and waits for each copy in every way.
fn upload(times: usize) {
    let (mut event, source) = (null_mut(), [3u8; 4096]);
    // SAFETY: C calls with good pointers and handles; device memory has as many bytes as are copied.
    unsafe {
        assert_eq!(hipEventCreate(&mut event), 0);
        for _ in 0..times {
            let ptr = malloc(source.len()).expect("memory");
            assert_eq!(hipMemcpyAsync(ptr, source.as_ptr().cast(), source.len(), H2D, null_mut()), 0);
            assert_eq!(hipEventRecord(event, null_mut()), 0);
            assert_eq!(
                [hipEventSynchronize(event), hipEventQuery(event), hipStreamSynchronize(null_mut())],
                [0; 3]
            );
            assert_eq!(free(ptr), 0);
            assert_eq!(hipStreamQuery(null_mut()), 0);
            synchronize();
        }
    }
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_uploads_once() {
    if is_program() {
        upload(1);
    }
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_uploads_a_hundred_times() {
    if is_program() {
        upload(100);
    }
}

#[test]
fn what_is_copied_to_new_memory_is_not_waited_for() {
    let worker = emulated(1 << 30, |_| {});
    let round_trips = |name, extension| with_extension(name, worker.local_addr(), extension);
    let once = round_trips("program_that_uploads_once", "on");
    assert_eq!(once, 2, "the first flight, and one because an event was made");
    assert_eq!(round_trips("program_that_uploads_a_hundred_times", "on"), once);
    assert!(round_trips("program_that_uploads_a_hundred_times", "off") > 100, "each is asked for");
}

#[test]
#[ignore = "a program that other tests run"]
fn program_with_all_kinds_of_memory() {
    if !is_program() {
        return;
    }
    for round in 0..10_u8 {
        let (mut pinned, mut managed, mut rows, mut pitch) = (null_mut(), null_mut(), null_mut(), 0);
        let device = malloc(3 * 4096).expect("memory");
        let mut back = vec![0; 100];
        // SAFETY: C calls with good pointers, and memory that they have given.
        unsafe {
            assert_eq!(hipHostMalloc(&mut pinned, 5000, 0), 0);
            assert_eq!(hipMallocManaged(&mut managed, 5000, 1), 0);
            assert_eq!(hipMallocPitch(&mut rows, &mut pitch, 257, 3), 0);
            assert_eq!(pitch, 512);
            pinned.cast::<u8>().write_bytes(round, 5000);
            assert_eq!(hipMemcpyAsync(device, pinned, 5000, H2D, null_mut()), 0);
            assert_eq!(hipMemcpyAsync(managed, device, 5000, DEFAULT, null_mut()), 0);
            assert_eq!(hipMemset2D(rows, pitch, 9, 257, 3), 0);
            assert_eq!(hipMemcpyAsync(rows.add(2 * pitch), managed, 100, DEFAULT, null_mut()), 0);
            assert_eq!(hipMemcpy(back.as_mut_ptr().cast(), rows.add(2 * pitch + 1), 100, D2H), 0);
            assert_eq!(back, [vec![round; 99], vec![9]].concat());
            assert_eq!(hipHostFree(pinned), 0);
            assert_eq!((free(managed), free(rows), free(device), free(device)), (0, 0, 0, 1));
        }
    }
    synchronize();
}

#[test]
fn each_kind_of_memory_is_placed() {
    let worker = emulated(256 * MIB, |_| {});
    let asked = emulated(256 * MIB, |config| {
        config.session.features = config.session.features.map(|all| all.without(Features::PLACES));
    });
    let round_trips =
        |worker: &Handle| with_extension("program_with_all_kinds_of_memory", worker.local_addr(), "on");
    let more = round_trips(&asked) - round_trips(&worker);
    assert_eq!(
        more, 41,
        "four allocations in each of ten rounds, and a synchronization that has nothing to wait for"
    );
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_fills_the_device() {
    if !is_program() {
        return;
    }
    let all = free_bytes();
    let mut numbers = Numbers(all as u64);
    let mut live: Vec<(Ptr, usize)> = Vec::new();
    for round in 0..60 {
        let left = free_bytes();
        assert_eq!(left, all - live.iter().map(|(_, size)| size).sum::<usize>(), "round {round}");
        if left > 0 {
            assert_eq!(malloc(left + 1), Err(OUT_OF_MEMORY), "round {round}");
            let last = malloc(left).expect("the last byte");
            assert_eq!((free_bytes(), malloc(1)), (0, Err(OUT_OF_MEMORY)), "round {round}");
            assert_eq!(free(last), 0);
        }
        match numbers.below(6) {
            0 | 1 if !live.is_empty() => {
                let (ptr, _) = live.swap_remove(numbers.below(live.len()));
                assert_eq!(free(ptr), 0);
            }
            2 if !live.is_empty() => {
                let (ptr, _) = live.swap_remove(numbers.below(live.len()));
                // SAFETY: a device pointer is only passed on.
                assert_eq!(unsafe { hipFreeAsync(ptr, null_mut()) }, 0);
                synchronize();
            }
            3 => {
                assert_eq!(malloc_async(left + 1), Err(OUT_OF_MEMORY), "round {round}");
                let last = malloc_async(left.max(1));
                assert_eq!(last.is_ok(), left > 0, "round {round}");
                last.into_iter().for_each(|ptr| assert_eq!(free(ptr), 0));
            }
            _ if left > 0 => {
                let size = 1 + numbers.below(left.div_ceil(3));
                live.push((malloc(size).expect("memory"), size));
            }
            _ => {}
        }
    }
    live.into_iter().for_each(|(ptr, _)| assert_eq!(free(ptr), 0));
    synchronize();
    assert_eq!(free_bytes(), all);
}

#[test]
fn memory_is_full_at_the_same_byte() {
    const NAME: &str = "program_that_fills_the_device";
    for extension in ["off", "on"] {
        let worker = emulated(40 * MIB, |_| {});
        with_extension(NAME, worker.local_addr(), extension);
        // Beside another session.
        let address = WorkerAddress::new(&worker.local_addr().to_string());
        let other = Connection::connect_offering(&address, std::time::Duration::from_secs(20), None);
        let other = other.expect("a worker is there");
        other.ask(&op::Malloc { size: 12_345_678, flags: 0 }).expect("memory");
        with_extension(NAME, worker.local_addr(), extension);
        // With a limit of the session's own.
        let worker = emulated(40 * MIB, |config| config.session.memory_max_bytes = 1_000_001);
        with_extension(NAME, worker.local_addr(), extension);
        // With a worker that has no extension, or no such feature.
        let worker = emulated(40 * MIB, |config| config.session.features = None);
        with_extension(NAME, worker.local_addr(), extension);
        let worker = emulated(40 * MIB, |config| config.session.features = Some(Features::NAMES));
        with_extension(NAME, worker.local_addr(), extension);
    }
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_has_a_lease() {
    if !is_program() {
        return;
    }
    let kept = malloc(1000).expect("memory");
    synchronize();
    let file = std::env::var("HIPR_TEST_FILE").expect("a file to say that it is there");
    std::fs::write(file, "it is").expect("a folder");
    // It makes no call until it is told to end.
    std::io::stdin().read_line(&mut String::new()).expect("a line");
    assert_eq!(free(kept), 0);
    let whole = malloc(30 * MIB).expect("the lease is asked for again");
    assert_eq!(free(whole), 0);
    synchronize();
}

#[test]
fn a_session_that_computes_gives_back_what_it_does_not_use() {
    let worker = emulated(40 * MIB, |_| {});
    let folder = std::env::temp_dir().join(format!("hipr-places-{}", std::process::id()));
    let mut holder = program("program_that_has_a_lease", worker.local_addr());
    holder.env("HIPR_TEST_FILE", &folder).stdin(std::process::Stdio::piped());
    let mut holder = holder.spawn().expect("a program");
    while !folder.exists() {
        assert!(holder.try_wait().expect("a child").is_none(), "it waits to be told");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    std::fs::remove_file(&folder).expect("the file that is there");
    with_extension("program_that_fills_the_device", worker.local_addr(), "on");
    drop(holder.stdin.take());
    assert!(holder.wait().expect("a child").success());
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_uses_half_of_the_device() {
    if !is_program() {
        return;
    }
    const HALF: usize = 20 * MIB;
    let mut numbers = Numbers(std::process::id().into());
    let mut live: Vec<(Ptr, usize)> = Vec::new();
    let mut left = HALF;
    for round in 0..400 {
        let size = 1 + numbers.below(left.max(1));
        if round % 3 < 2 && left >= size {
            live.push((malloc(size).unwrap_or_else(|error| panic!("{error} in round {round}")), size));
            left -= size;
        } else if !live.is_empty() {
            let (ptr, size) = live.swap_remove(numbers.below(live.len()));
            assert_eq!(free(ptr), 0);
            left += size;
        }
    }
    live.into_iter().for_each(|(ptr, _)| assert_eq!(free(ptr), 0));
    synchronize();
}

#[test]
fn sessions_that_compete_get_what_is_there() {
    let worker = emulated(40 * MIB, |_| {});
    let start = || {
        let mut program = program("program_that_uses_half_of_the_device", worker.local_addr());
        program.spawn().expect("a program")
    };
    for mut program in [start(), start()] {
        assert!(program.wait().expect("a child").success());
    }
}

#[test]
#[ignore = "a program that other tests run"]
fn program_with_threads_that_allocate() {
    if !is_program() {
        return;
    }
    let all = free_bytes();
    let work = |thread: u8| {
        let mut numbers = Numbers(thread.into());
        for round in 0..300 {
            let size = 1 + numbers.below(100_000);
            let ptr = malloc(size).expect("memory");
            let mut back = vec![0; size];
            // SAFETY: C calls with good pointers.
            unsafe {
                assert_eq!(hipMemsetAsync(ptr, i32::from(thread), size, null_mut()), 0);
                if round % 20 == 0 {
                    assert_eq!(hipMemcpy(back.as_mut_ptr().cast(), ptr, size, D2H), 0);
                    assert!(back.iter().all(|byte| *byte == thread));
                }
            }
            assert_eq!(free(ptr), 0);
        }
    };
    std::thread::scope(|scope| (1..5).for_each(|thread| drop(scope.spawn(move || work(thread)))));
    synchronize();
    assert_eq!(free_bytes(), all);
    // SAFETY: a C call without parameters.
    assert_eq!(unsafe { hipGetLastError() }, 0);
}

#[test]
fn threads_share_the_lease() {
    // Of this, one thread's memory and that of another do not fit into the first lease.
    let worker = emulated(MIB / 2, |_| {});
    with_extension("program_with_threads_that_allocate", worker.local_addr(), "on");
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_resets_the_device() {
    if !is_program() {
        return;
    }
    let mut met = std::collections::BTreeSet::new();
    let all = free_bytes();
    for round in 0..5 {
        let kept = malloc(1000).expect("memory");
        for _ in 0..200 {
            let ptr = malloc(10).expect("memory");
            assert!(met.insert(ptr.addr()), "no address twice, in round {round}");
            assert_eq!(free(ptr), 0);
        }
        // SAFETY: a C call without parameters.
        assert_eq!(unsafe { hipDeviceReset() }, 0);
        assert_eq!((free(kept), free_bytes()), (1, all), "round {round}");
        if round == 3 {
            let whole = malloc(all).expect("all there is");
            assert_eq!(free(whole), 0);
        }
    }
    synchronize();
}

#[test]
fn a_reset_begins_anew_at_other_addresses() {
    let worker = emulated(10 * MIB, |_| {});
    with_extension("program_that_resets_the_device", worker.local_addr(), "on");
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_gets_no_memory() {
    if is_program() {
        assert_eq!(malloc(4096), Err(OUT_OF_MEMORY));
    }
}

#[test]
fn a_worker_grants_what_it_likes() {
    let granting = |lease: MemLeaseReply| {
        FakeWorker::start(move |asked| match asked.op {
            Opcode::OFFER => Reaction::Good(bytes(&OfferReply { features: Features::PLACES.bits() })),
            Opcode::MEM_LEASE => Reaction::Good(bytes(&lease)),
            _ => easy(asked),
        })
    };
    let lease =
        MemLeaseReply { window_start: 1 << 40, window_bytes: 1 << 30, added_bytes: 0, added_allocations: 9 };
    let run_with = |name, lease| {
        let worker = granting(lease);
        let mut program = program(name, worker.address);
        program.env("HIPR_EXTENSION", "on");
        run(program);
        worker.until(Opcode::SHUTDOWN).iter().map(|asked| asked.op).collect::<Vec<_>>()
    };
    // Never what is wanted: that is no reason to ask for ever.
    let asked = run_with("program_that_gets_no_memory", lease);
    assert_eq!(asked.iter().filter(|op| **op == Opcode::MEM_LEASE).count(), 2);
    let none = MemLeaseReply { added_allocations: 0, added_bytes: 1 << 30, ..lease };
    run_with("program_that_gets_no_memory", none);
    // No window, or an impossible one: memory is asked for.
    for lease in [MemLeaseReply { window_bytes: 0, ..lease }, MemLeaseReply { window_start: 0, ..none }] {
        assert!(run_with("program_that_allocates_once", lease).contains(&Opcode::MALLOC));
    }
    let good = MemLeaseReply { added_bytes: 1 << 30, ..lease };
    assert!(run_with("program_that_allocates_once", good).contains(&Opcode::MALLOC_AT));
}
