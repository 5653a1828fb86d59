//! Tests memory that worker and program both map: over unix sockets and shared memory, with each event loop; who may have what of it; what
//! becomes of what is freed; and programs that use it.

mod support;

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hipr_client::{Connection, Extra, Rows, WorkerAddress};
use hipr_proto::op::{self, MemLeaseReply, OfferReply, kind};
use hipr_proto::{Features, HipError, HipResult, Op, Opcode};
use hipr_worker::{Address, Config, Handle, Io, Worker};
use support::hip::*;
use support::{FakeWorker, Reaction, bytes, easy, is_program, log_lines, program, run, run_counted};

const PAGE: u64 = 2 << 20;
const HOST: u32 = 1;
const DEVICE: u32 = 2;
const MANAGED: u32 = 3;

/// A worker with an emulated GPU, and the folder of its socket.
struct Local {
    worker: Handle,
    _folder: tempfile::TempDir,
}

impl Local {
    fn start(io: Io, transport: &str, memory_bytes: u64, session_max_bytes: u64) -> Option<Self> {
        let gpu =
            hipr_sim::Gpu::new(hipr_sim::Config { memory_bytes: Some(memory_bytes), ..Default::default() });
        let folder = tempfile::tempdir().expect("a folder");
        let listen = match transport {
            "tcp" => "127.0.0.1:0".into(),
            "unix" => Address::Unix(folder.path().join("worker")),
            _ => Address::Shm(folder.path().join("worker")),
        };
        let mut config =
            Config { listen, io, ..Config::new(std::sync::Arc::new(gpu.expect("the emulated GPU"))) };
        config.session.memory_max_bytes = session_max_bytes;
        match Worker::bind(config) {
            Ok(worker) => Some(Self { worker: worker.spawn().expect("a worker"), _folder: folder }),
            // As in many containers.
            Err(why) if io == Io::Uring => {
                println!("no io_uring here: {why}");
                None
            }
            Err(why) => panic!("{why}"),
        }
    }

    fn address(&self) -> String {
        self.worker.local_addr().to_string()
    }

    fn session(&self) -> Session {
        self.with(Some(hipr_client::FEATURES))
    }

    fn with(&self, offer: Option<Features>) -> Session {
        let address = WorkerAddress::from(self.worker.local_addr());
        let connection = Connection::connect_offering(&address, Duration::from_secs(60), offer);
        Session { connection: connection.expect("a session"), start: 0 }
    }
}

/// Workers with each event loop that the system has, over each transport within a machine.
fn everywhere() -> Vec<Local> {
    let all =
        [Io::Mio, Io::Uring].into_iter().flat_map(|io| ["unix", "shm"].map(|transport| (io, transport)));
    all.filter_map(|(io, transport)| Local::start(io, transport, 1 << 30, u64::MAX)).collect()
}

/// A session that knows its window.
struct Session {
    connection: Connection,
    start: u64,
}

impl Session {
    fn ask<O: Op>(&self, op: &O) -> HipResult<O::Reply> {
        Ok(self.connection.ask_with(op, Extra::default())?)
    }

    fn lease(&mut self) -> MemLeaseReply {
        let first = self.connection.first_lease();
        let lease = first
            .map_or_else(|| self.ask(&op::MemLease { want_bytes: 0 }), |first| Ok(first?))
            .expect("a lease");
        self.start = lease.window_start;
        lease
    }

    /// Asks for the file.
    fn share(&mut self) -> File {
        let lease = self.lease();
        let reply = self.ask(&op::MemShare {}).expect("a file");
        assert_eq!((reply.file_bytes, reply.is_passed), (lease.window_bytes, 1));
        self.connection.take_file(reply.file_bytes).expect("a sealed file of that size").into()
    }

    fn place(&self, offset: u64, size: u64, kind: u32) -> HipResult<u64> {
        let device_ptr = self.start + offset;
        self.ask(&op::MallocShared { device_ptr, size, kind, flags: 0 }).map(|()| device_ptr)
    }

    fn write(&self, dst: u64, bytes: &[u8]) {
        let copy =
            op::Memcpy { dst, src: 0, size: bytes.len() as u64, kind: kind::HOST_TO_DEVICE, stream: 0 };
        let extra = Extra { inline: bytes, ..Extra::default() };
        self.connection.ask_with(&copy, extra).expect("they are written");
    }

    fn read(&self, src: u64, len: usize) -> Vec<u8> {
        let mut into = vec![0; len];
        let copy = op::Memcpy { dst: 0, src, size: len as u64, kind: kind::DEVICE_TO_HOST, stream: 0 };
        let rows = Rows::one(into.as_mut_ptr(), len);
        // SAFETY: the vector is ours during the call.
        unsafe { self.connection.read_rows(&copy, Extra::default(), rows) }.expect("they are read");
        into
    }

    fn free_bytes(&self) -> u64 {
        self.ask(&op::MemGetInfo {}).expect("an answer").free_bytes
    }
}

fn at(file: &File, offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0xcc; len];
    file.read_exact_at(&mut bytes, offset).expect("bytes of the file");
    bytes
}

#[test]
fn what_either_side_writes_the_other_has() {
    for worker in everywhere() {
        let mut session = worker.session();
        let file = session.share();
        for (place, kind) in [(3 * PAGE, HOST), (9 * PAGE, MANAGED)] {
            let device_ptr = session.place(place, 3 * PAGE, kind).expect("memory");
            assert_eq!(session.read(device_ptr, 5000), [0; 5000]);
            file.write_all_at(b"from the client", place + PAGE + 77).expect("written");
            assert_eq!(session.read(device_ptr + PAGE + 77, 15), b"from the client");
            session.write(device_ptr + 3 * PAGE - 5, b"there");
            assert_eq!(at(&file, place + 3 * PAGE - 5, 5), b"there");
            // Within the device, in the order of a stream.
            let fill = op::Memset { dst: device_ptr, value: 7, size: PAGE, stream: 0 };
            session.ask(&op::MemsetAsync(fill)).expect("it is enqueued");
            session.ask(&op::DeviceSynchronize {}).expect("it is done");
            assert_eq!(at(&file, place, PAGE as usize), [7; PAGE as usize]);
        }
        // Other memory is not in the file.
        let device_ptr = session.start + 20 * PAGE;
        session.ask(&op::MallocAt { device_ptr, size: 100, kind: DEVICE, flags: 0 }).expect("memory");
        session.write(device_ptr, b"mine");
        assert_eq!(at(&file, 20 * PAGE, 4), [0; 4]);
    }
}

#[test]
fn what_is_freed_becomes_zeros_and_takes_no_memory() {
    for worker in everywhere() {
        let mut session = worker.session();
        let file = session.share();
        let used = || file.metadata().expect("of the file").blocks() * 512;
        // More than is cleared at once.
        let (bytes, all) = (20 * PAGE, session.free_bytes());
        for round in 0..3 {
            for (place, kind) in [(0, HOST), (22 * PAGE, MANAGED), (44 * PAGE, HOST)] {
                session.place(place, bytes, kind).expect("memory");
                assert_eq!(at(&file, place, bytes as usize), vec![0; bytes as usize], "round {round}");
                file.write_all_at(&vec![9; bytes as usize], place).expect("written");
            }
            assert_eq!((used(), session.free_bytes()), (3 * bytes, all - 3 * bytes));
            session.ask(&op::FreeHost { device_ptr: session.start }).expect("it is freed");
            session.ask(&op::Free { device_ptr: session.start + 22 * PAGE }).expect("it is freed");
            assert_eq!(used(), bytes);
            assert_eq!(at(&file, 44 * PAGE + bytes - 3, 3), [9; 3], "it is not");
            session.ask(&op::FreeHost { device_ptr: session.start + 44 * PAGE }).expect("it is freed");
            // A client that comes late.
            file.write_all_at(b"late", 23 * PAGE).expect("written");
            let again = session.ask(&op::MemShare {}).expect("an answer");
            assert_eq!((again.is_passed, session.free_bytes()), (0, all));
            assert!(session.connection.take_file(again.file_bytes).is_err(), "it is passed once");
            file.write_all_at(&[0; 4], 23 * PAGE).expect("written");
        }
    }
}

#[test]
fn memory_that_is_both_sides_is_refused_as_any_other() {
    for worker in everywhere() {
        let mut session = worker.session();
        let lease = session.lease();
        assert_eq!(session.place(0, 4096, HOST), Err(HipError::INVALID_VALUE), "there is no file");
        let file = session.share();
        for (place, size, kind, error) in [
            (0, 0, HOST, HipError::INVALID_VALUE),
            (0, 4095, HOST, HipError::INVALID_VALUE),
            (4096, 4096, HOST, HipError::INVALID_VALUE),
            (0, 4096, DEVICE, HipError::INVALID_VALUE),
            (0, 4096, 7, HipError::INVALID_VALUE),
            (lease.window_bytes, 4096, HOST, HipError::INVALID_VALUE),
            (lease.window_bytes - PAGE, 4096, HOST, HipError::INVALID_VALUE),
            (0_u64.wrapping_sub(session.start), 4096, HOST, HipError::INVALID_VALUE),
            (0, u64::MAX - 4095, HOST, HipError::INVALID_VALUE),
            (0, 1 << 31, HOST, HipError::OUT_OF_MEMORY),
        ] {
            let device_ptr = session.start.wrapping_add(place);
            let at = op::MallocShared { device_ptr, size, kind, flags: 0 };
            assert_eq!(session.ask(&at), Err(error), "{place:#x} {size:#x} {kind}");
        }
        session.place(0, 4096, HOST).expect("memory");
        assert_eq!(session.place(0, 4096, HOST), Err(HipError::INVALID_VALUE), "it is taken");
        assert_eq!(session.place(PAGE, 4096, HOST), Err(HipError::INVALID_VALUE), "the page behind it");
        let free = op::FreeAsync { device_ptr: session.start, stream: 0 };
        assert_eq!(session.ask(&free), Err(HipError::INVALID_VALUE), "pinned memory is not freed in order");
        assert!(
            session.ask(&op::IpcGetMemHandle { device_ptr: session.start }).is_err(),
            "a file of this session"
        );
        session.write(session.start, b"before");
        session.ask(&op::DeviceReset {}).expect("it is reset");
        assert_eq!(session.place(0, 4096, HOST), Err(HipError::INVALID_VALUE), "the file is of no more use");
        assert_eq!(at(&file, 0, 6), b"before", "to the worker");
        session.ask(&op::MemLease { want_bytes: 0 }).expect("a lease");
        let other = session.share();
        session.place(0, 4096, HOST).expect("memory");
        assert_eq!(session.read(session.start, 6), [0; 6]);
        session.write(session.start, b"after");
        assert_eq!((at(&file, 0, 6), at(&other, 0, 5)), (b"before".to_vec(), b"after".to_vec()));
    }
}

#[test]
fn a_client_has_no_more_than_it_may_and_hurts_nobody() {
    const MAX: u64 = 16 << 20;
    for worker in [Io::Mio, Io::Uring].into_iter().filter_map(|io| Local::start(io, "shm", 3 * MAX / 2, MAX))
    {
        let mut good = worker.session();
        let own = good.share();
        good.place(0, 4096, HOST).expect("memory");
        let mut bad = worker.session();
        let file = bad.share();
        for len in [0, 4096, u64::MAX >> 2] {
            assert!(file.set_len(len).is_err(), "its length is final");
        }
        bad.ask(&op::MemLease { want_bytes: MAX / 2 }).expect("a lease");
        assert_eq!(
            bad.ask(&op::MemLease { want_bytes: MAX }).map(drop),
            Err(HipError::OUT_OF_MEMORY),
            "the session's limit"
        );
        bad.place(0, MAX / 2, HOST).expect("memory");
        // What it may still place it may also have written before it says so.
        file.write_all_at(&[1; 4096], 50 * PAGE).expect("written");
        bad.place(50 * PAGE, 4096, HOST).expect("memory");
        assert_eq!(bad.read(bad.start + 50 * PAGE, 2), [1; 2]);
        file.write_all_at(&vec![1; 4 * MAX as usize], 100 * PAGE).expect("a file does not refuse it");
        assert_eq!(bad.place(200 * PAGE, 4096, HOST), Err(HipError::OUT_OF_MEMORY));
        assert_eq!((good.read(good.start, 4), at(&own, 0, 4)), (vec![0; 4], vec![0; 4]));
        // Holes under memory that is in use, and bytes that change all the time while they are copied.
        let stop = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut value = 0_u8;
                while !stop.load(Ordering::Relaxed) {
                    value = value.wrapping_add(1);
                    file.write_all_at(&vec![value; 1 << 16], 0).expect("written");
                }
            });
            for _ in 0..200 {
                bad.read(bad.start, 1 << 16);
                bad.write(bad.start, &[3; 1 << 12]);
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert!(good.free_bytes() < MAX - 4096, "less than it may have");
        drop(bad);
        while good.free_bytes() < MAX - 4096 {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(good.place(2 * PAGE, 4096, HOST).is_ok());
    }
}

#[test]
fn a_client_that_takes_no_descriptors_is_told_no_more() {
    // Each asks and takes nothing; one is gone before it is answered.
    for worker in everywhere() {
        for _ in 0..50 {
            let mut session = worker.session();
            session.lease();
            if session.connection.start(&op::MemShare {}, Extra::default()).is_err() {
                panic!("the connection is there");
            }
        }
        let mut session = worker.session();
        let file = session.share();
        session.place(0, 4096, HOST).expect("memory");
        session.write(session.start, b"well");
        assert_eq!(at(&file, 0, 4), b"well");
    }
}

#[test]
fn only_sessions_on_the_machine_of_an_emulated_gpu_share_memory() {
    let shares = |worker: &Local, offer| {
        let mut session = worker.with(offer);
        let has = session.connection.features().contains(Features::SHARED);
        session.lease();
        let asked = session.ask(&op::MemShare {}).map(drop);
        let placed = session.place(0, 4096, HOST).map(drop);
        assert_eq!(asked == Err(HipError::NOT_SUPPORTED) && placed == Err(HipError::NOT_SUPPORTED), !has);
        has
    };
    let tcp = Local::start(Io::Mio, "tcp", 1 << 30, u64::MAX).expect("a worker");
    assert!(!shares(&tcp, Some(hipr_client::FEATURES)), "no descriptor goes over TCP");
    let local = Local::start(Io::Mio, "unix", 1 << 30, u64::MAX).expect("a worker");
    assert!(shares(&local, Some(hipr_client::FEATURES)));
    assert!(
        !shares(&local, Some(hipr_client::FEATURES.without(Features::SHARED))),
        "a client from before that"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let (worker, _script) = support::scripted_at(Address::Unix(folder.path().join("worker")));
    let address = WorkerAddress::from(worker.local_addr());
    let scripted = Connection::connect(&address, Duration::from_secs(60)).expect("a session");
    assert!(!scripted.features().contains(Features::SHARED), "a device that has its own memory");
}

// ---- programs ------------------------------------------------------------------------------------------------------------

fn pinned(size: usize) -> *mut u8 {
    let mut ptr = null_mut();
    // SAFETY: a C call with a good pointer.
    assert_eq!(unsafe { hipHostMalloc(&mut ptr, size, 0) }, 0);
    ptr.cast()
}

fn synchronize() {
    // SAFETY: a C call without parameters.
    assert_eq!(unsafe { hipDeviceSynchronize() }, 0);
}

const GIB: usize = 1 << 30;

/// Writes to pinned memory of 1 GiB in turns with the device, which sets some of it and copies from it.
#[test]
#[ignore = "a program that other tests run"]
fn program_with_much_pinned_memory() {
    if !is_program() {
        return;
    }
    let words = pinned(GIB);
    let mut device = null_mut();
    // SAFETY: C calls with good pointers; the memory is used while it is there, and not while the device writes to it.
    unsafe {
        assert_eq!(hipMalloc(&mut device, 4096), 0);
        let mut mapped = null_mut();
        assert_eq!(hipHostGetDevicePointer(&mut mapped, words.cast(), 0), 0);
        for round in 0..100_usize {
            let at = round * 7919 * 4096 % (GIB - 4096);
            *words.add(at) = round as u8;
            assert_eq!(
                hipMemsetAsync(mapped.cast::<u8>().add(at + 1).cast(), round as i32 + 1, 16, null_mut()),
                0
            );
            synchronize();
            assert_eq!(
                (*words.add(at), *words.add(at + 1), *words.add(at + 16)),
                (round as u8, round as u8 + 1, round as u8 + 1)
            );
            assert_eq!(hipMemcpyAsync(device, words.add(at).cast(), 4096, 1, null_mut()), 0);
            assert_eq!(hipMemcpyAsync(words.add(GIB - 4096).cast(), device, 4096, 2, null_mut()), 0);
            synchronize();
            assert_eq!((*words.add(GIB - 4096), *words.add(GIB - 4095)), (round as u8, round as u8 + 1));
        }
        assert_eq!(hipHostFree(words.cast()), 0);
    }
    synchronize();
}

#[test]
fn pinned_memory_moves_no_bytes_within_a_machine() {
    for transport in ["unix", "shm"] {
        let worker = Local::start(Io::Mio, transport, 4 << 30, u64::MAX).expect("a worker");
        let (stderr, number) = run_counted(program("program_with_much_pinned_memory", worker.address()));
        assert_eq!(log_lines(&stderr), Vec::<&str>::new());
        // A page of each round would be twice as much.
        assert!(
            number("bytes_sent") < 60_000 && number("bytes_received") < 60_000,
            "{}",
            number("bytes_received")
        );
        assert!(number("round_trips") < 210, "one for each synchronization: {}", number("round_trips"));
    }
}

/// Allocates and frees pinned memory until addresses come round again: a window has 1 TiB.
#[test]
#[ignore = "a program that other tests run"]
fn program_that_goes_round_its_window() {
    if !is_program() {
        return;
    }
    const SIZE: usize = 6 << 30;
    let mut seen = std::collections::BTreeSet::new();
    let mut again = 0;
    for round in 0..400_u32 {
        let memory = pinned(SIZE);
        again += usize::from(!seen.insert(memory as usize));
        for at in [0, SIZE / 2, SIZE - 4] {
            // SAFETY: in the memory, which is aligned.
            unsafe {
                let place = memory.add(at).cast::<u32>();
                assert_eq!(*place, 0, "round {round}");
                *place = round + 1;
                // It stays: nothing that was freed before is cleared any more.
                assert_eq!(hipMemsetAsync(memory.cast(), 5, 1, null_mut()), 0);
            }
        }
        synchronize();
        // SAFETY: as above.
        unsafe {
            assert_eq!(*memory.add(SIZE / 2).cast::<u32>(), round + 1, "round {round}");
            assert_eq!(hipHostFree(memory.cast()), 0);
        }
    }
    assert!(again > 100, "addresses were used again: {again}");
    synchronize();
}

#[test]
fn memory_whose_address_comes_round_again_is_new() {
    let worker = Local::start(Io::Mio, "shm", 16 << 30, u64::MAX).expect("a worker");
    let stderr = run(program("program_that_goes_round_its_window", worker.address()));
    assert_eq!(log_lines(&stderr), Vec::<&str>::new());
}

/// Uses pinned memory with a worker that may not share it.
#[test]
#[ignore = "a program that other tests run"]
fn program_with_some_pinned_memory() {
    if !is_program() {
        return;
    }
    for _ in 0..3 {
        let memory = pinned(4096);
        // SAFETY: the memory is there.
        unsafe {
            *memory = 1;
            assert_eq!(hipHostFree(memory.cast()), 0);
        }
    }
    synchronize();
}

#[test]
fn a_worker_that_passes_no_file_is_used_without() {
    let features = Features::PLACES.union(Features::SHARED).bits();
    let window_bytes = 1 << 40;
    let lease = MemLeaseReply {
        window_start: 0x2000_0000_0000,
        window_bytes,
        added_bytes: 1 << 30,
        added_allocations: 100,
    };
    for (file_bytes, is_passed, warns) in [
        (window_bytes, 1, true),
        (window_bytes, 0, false),
        (4096, 1, false),
        (0, 0, false),
        (u64::MAX, 1, false),
    ] {
        let worker = FakeWorker::start(move |asked| match asked.op {
            Opcode::OFFER => Reaction::Good(bytes(&OfferReply { features })),
            Opcode::MEM_LEASE => Reaction::Good(bytes(&lease)),
            Opcode::MEM_SHARE => {
                Reaction::Good(bytes(&op::MemShareReply { file_bytes, is_passed, reserved: 0 }))
            }
            _ => easy(asked),
        });
        let stderr = run(program("program_with_some_pinned_memory", worker.address));
        assert_eq!(stderr.contains("is copied between program and worker"), warns, "{stderr}");
        let asked = worker.until(Opcode::SHUTDOWN);
        let count = |op| asked.iter().filter(|asked| asked.op == op).count();
        assert_eq!(
            [count(Opcode::MEM_SHARE), count(Opcode::MALLOC_AT), count(Opcode::MALLOC_SHARED)],
            [1, 3, 0]
        );
    }
    // One that refuses it after it has accepted the feature.
    let worker = FakeWorker::start(move |asked| match asked.op {
        Opcode::OFFER => Reaction::Good(bytes(&OfferReply { features })),
        Opcode::MEM_LEASE => Reaction::Good(bytes(&lease)),
        Opcode::MEM_SHARE => Reaction::Bad(HipError::OUT_OF_MEMORY),
        _ => easy(asked),
    });
    run(program("program_with_some_pinned_memory", worker.address));
    let asked = worker.until(Opcode::SHUTDOWN);
    assert_eq!(asked.iter().filter(|asked| asked.op == Opcode::MALLOC_AT).count(), 3);
}
