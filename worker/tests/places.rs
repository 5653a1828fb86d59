//! Tests memory that the client places itself: leases, windows, and what happens to both.

mod common;

use std::sync::Arc;

use common::{Peer, event_loop, scripted, until, worker};
use hipr_proto::op::*;
use hipr_proto::{Features, HipError, HipResult, PLACE_PAGE_BYTES};
use hipr_worker::{Address, Config, Handle, Worker};

const PAGE: u64 = PLACE_PAGE_BYTES;
/// Memory of the small device.
const TOTAL: u64 = 64 << 20;
const FULL: HipResult<()> = Err(HipError::OUT_OF_MEMORY);
const INVALID: HipResult<()> = Err(HipError::INVALID_VALUE);
const HOST: u32 = 1;
const DEVICE: u32 = 2;
const MANAGED: u32 = 3;

/// Starts a worker with an emulated GPU of 64 MiB.
fn small(configure: impl FnOnce(&mut Config)) -> Handle {
    let gpu = hipr_sim::Gpu::new(hipr_sim::Config { memory_bytes: Some(TOTAL), ..Default::default() });
    let mut config =
        Config { listen: "127.0.0.1:0".into(), io: event_loop(), ..Config::new(Arc::new(gpu.unwrap())) };
    configure(&mut config);
    Worker::bind(config).unwrap().spawn().unwrap()
}

/// A client that places memory.
struct Placer {
    peer: Peer,
    /// The first address of its window.
    start: u64,
}

impl Placer {
    /// Opens a session with the feature, without a lease.
    fn bare(address: Address) -> Self {
        let mut peer = Peer::hello(address);
        let offer = Offer { features: Features::PLACES.bits(), part: 0 };
        assert_eq!(peer.call(&offer).map(|reply| reply.features), Ok(Features::PLACES.bits()));
        Self { peer, start: 0 }
    }

    /// Opens a session with a lease of so many bytes, and of one allocation at least.
    fn new(address: Address, bytes: u64) -> Self {
        let mut placer = Self::bare(address);
        let lease = placer.lease(bytes.max(1)).unwrap();
        assert!(lease.added_bytes >= bytes && lease.added_allocations > 0 && lease.window_bytes >= 16 << 30);
        placer.start = lease.window_start;
        placer.give_back(lease.added_bytes - bytes, 0).unwrap();
        placer
    }

    fn lease(&mut self, want_bytes: u64) -> HipResult<MemLeaseReply> {
        self.peer.call(&MemLease { want_bytes })
    }

    fn give_back(&mut self, bytes: u64, allocations: u64) -> HipResult<()> {
        self.peer.call(&MemReturn { bytes, allocations, recall: 0 })
    }

    /// Places device memory at a page of the window.
    fn place(&mut self, page: u64, size: u64) -> HipResult<u64> {
        let device_ptr = self.start + page * PAGE;
        self.peer.call(&MallocAt { device_ptr, size, kind: DEVICE, flags: 0 }).map(|()| device_ptr)
    }

    fn free(&mut self, device_ptr: u64) -> HipResult<()> {
        self.peer.call(&Free { device_ptr })
    }

    /// Returns whether so many bytes are left in the lease, and not one more.
    fn has_left(&mut self, bytes: u64) -> bool {
        self.give_back(bytes + 1, 0) == INVALID
            && self.peer.call(&MemReturn { bytes, allocations: 0, recall: 0 }) == Ok(())
    }

    fn free_bytes(&mut self) -> u64 {
        self.peer.call(&MemGetInfo {}).unwrap().free_bytes
    }
}

#[test]
fn placed_memory_is_memory_like_any_other() {
    let worker = worker("sim");
    let mut a = Placer::new(worker.local_addr(), 10 * PAGE);
    for (at, (kind, memory_type)) in [(DEVICE, 2), (HOST, 1), (MANAGED, 3)].into_iter().enumerate() {
        let device_ptr = a.start + 4 * at as u64 * PAGE;
        // Not answered, as clients do, and used by the next request.
        a.peer.forget(&MallocAt { device_ptr, size: PAGE + 10, kind, flags: 1 }, &[]);
        a.peer.forget(&Memset { dst: device_ptr + PAGE, value: 7, size: 10, stream: 0 }, &[]);
        let read =
            Memcpy { src: device_ptr + PAGE - 2, size: 12, kind: kind::DEVICE_TO_HOST, dst: 0, stream: 0 };
        let (_, bytes) = a.peer.call_inline(&read, &[]).unwrap();
        assert_eq!(bytes, [0, 0, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7]);
        let attributes = a.peer.call(&PointerGetAttributes { ptr: device_ptr + 5 }).unwrap();
        assert_eq!((attributes.memory_type, attributes.allocation_flags), (memory_type, 1));
        assert_eq!(a.peer.call(&MemPtrGetInfo { ptr: device_ptr }).map(|reply| reply.size), Ok(PAGE + 10));
        let beyond = Memset { dst: device_ptr + PAGE, value: 7, size: 11, stream: 0 };
        assert_eq!(a.peer.call(&beyond), INVALID);
        let freed = if kind == HOST { a.peer.call(&FreeHost { device_ptr }) } else { a.free(device_ptr) };
        assert_eq!(freed, Ok(()));
        assert_eq!(a.peer.call(&beyond), INVALID);
        assert_eq!(a.free(device_ptr), INVALID, "it is gone");
    }
    assert!(a.has_left(10 * PAGE));
}

#[test]
fn what_is_refused_touches_nothing() {
    let worker = small(|_| {});
    let mut other = Placer::new(worker.local_addr(), PAGE);
    let mut a = Placer::new(worker.local_addr(), 2 * PAGE);
    let placed = a.place(4, PAGE + 1).unwrap();
    let plain = a.peer.malloc(16);
    let windows_end = a.start + (1 << 40);
    let start = a.start;
    let page = |at: u64| start + at * PAGE;
    let cases = [
        (page(0), 0, DEVICE, INVALID),
        (page(0) + 256, 1, DEVICE, INVALID),
        (page(0) + PAGE / 2, 1, DEVICE, INVALID),
        (page(4), 1, DEVICE, INVALID),
        (page(5), 1, DEVICE, INVALID),
        (page(6), 1, DEVICE, INVALID),
        (page(3), 1, DEVICE, INVALID),
        (page(2), PAGE + 1, DEVICE, INVALID),
        (a.start - PAGE, 1, DEVICE, INVALID),
        (windows_end - PAGE, 1, DEVICE, INVALID),
        (windows_end, 1, DEVICE, INVALID),
        (other.start, 1, DEVICE, INVALID),
        (plain, 1, DEVICE, INVALID),
        (0, 1, DEVICE, INVALID),
        (u64::MAX - PAGE + 1, 1, DEVICE, INVALID),
        (page(0), u64::MAX, DEVICE, INVALID),
        (page(0), 1, 0, INVALID),
        (page(0), 1, 4, INVALID),
        (page(0), 1, u32::MAX, INVALID),
        (page(8), PAGE, DEVICE, FULL),
        (page(8), PAGE, HOST, FULL),
        (page(8), PAGE, MANAGED, FULL),
        (page(8), 1 << 30, DEVICE, FULL),
    ];
    let free_before = a.free_bytes();
    for (device_ptr, size, kind, expected) in cases {
        let what = format!("{device_ptr:#x} {size:#x} {kind}");
        assert_eq!(a.peer.call(&MallocAt { device_ptr, size, kind, flags: 0 }), expected, "{what}");
        assert_eq!(a.peer.call(&MemPtrGetInfo { ptr: page(8) }).map(drop), INVALID, "{what}");
        assert_eq!(a.free_bytes(), free_before, "{what}");
    }
    assert_eq!(a.place(8, PAGE - 1), Ok(page(8)), "to the byte");
    assert_eq!(a.give_back(1, 0), INVALID);
    let info = a.peer.call(&MemPtrGetInfo { ptr: placed });
    assert_eq!(info.map(|reply| reply.size), Ok(PAGE + 1), "what was there is there");
    other.place(0, PAGE).unwrap();
}

#[test]
fn only_a_session_with_the_feature_places_memory() {
    for name in ["sim", "script", "null"] {
        let worker = worker(name);
        let mut peer = Peer::hello(worker.local_addr());
        let accepted = peer.call(&Offer { features: u64::MAX, part: 0 }).unwrap().features;
        assert_eq!(accepted & Features::PLACES.bits() != 0, name != "null", "{name}");
        let mut peer = Peer::hello(worker.local_addr());
        peer.accept_notifications();
        peer.call(&Offer { features: !Features::PLACES.bits(), part: 0 }).unwrap();
        let refused = Err(HipError::NOT_SUPPORTED);
        assert_eq!(peer.call(&MemLease { want_bytes: 0 }).map(drop), refused);
        assert_eq!(peer.call(&MallocAt { device_ptr: 0, size: 1, kind: DEVICE, flags: 0 }), refused);
        assert_eq!(peer.call(&MemReturn { bytes: 0, allocations: 0, recall: 0 }), refused);
    }
}

#[test]
fn the_same_byte_is_the_last_one_with_a_lease_and_without() {
    for taken in [0, 1, TOTAL / 2, TOTAL - 1] {
        let worker = small(|_| {});
        let mut other = Peer::hello(worker.local_addr());
        if taken > 0 {
            other.malloc(taken);
        }
        let left = TOTAL - taken;
        let mut a = Placer::bare(worker.local_addr());
        let first = a.lease(0).unwrap();
        assert_eq!(first.added_bytes, left / 2, "a part of what is free");
        assert_eq!(a.free_bytes(), left, "a lease is free memory");
        let missing = left - first.added_bytes;
        assert_eq!(a.lease(missing + 1).map(drop), FULL, "{taken}");
        let second = a.lease(missing).unwrap();
        assert_eq!(second, MemLeaseReply { added_bytes: missing, ..first }, "{taken}: all of it");
        a.start = first.window_start;
        assert_eq!(a.place(0, left + 1).map(drop), FULL);
        a.place(0, left).unwrap();
        assert_eq!(a.free_bytes(), 0);
        assert_eq!(a.lease(1).map(drop), FULL);
        assert_eq!(a.lease(0).map(|reply| reply.added_bytes), Ok(0));
    }
}

#[test]
fn no_other_session_gets_what_is_leased() {
    let worker = small(|_| {});
    let mut a = Placer::new(worker.local_addr(), 40 << 20);
    let mut b = Placer::bare(worker.local_addr());
    let malloc = |peer: &mut Peer, size| peer.call(&Malloc { size, flags: 0 }).map(|reply| reply.device_ptr);
    assert_eq!(malloc(&mut b.peer, (24 << 20) + 1).map(drop), FULL);
    assert_eq!(b.lease((24 << 20) + 1).map(drop), FULL);
    assert_eq!((a.free_bytes(), b.free_bytes()), (TOTAL, TOTAL), "nothing is used");
    let ptr = malloc(&mut b.peer, 24 << 20).unwrap();
    let placed = a.place(0, 40 << 20).unwrap();
    assert_eq!((a.free_bytes(), b.free_bytes()), (0, 0));
    a.free(placed).unwrap();
    assert_eq!(malloc(&mut b.peer, 1).map(drop), FULL, "freed, it is the lease's again");
    a.give_back(1 << 20, 0).unwrap();
    malloc(&mut b.peer, 1 << 20).unwrap();
    assert_eq!(malloc(&mut b.peer, 1).map(drop), FULL);
    b.free(ptr).unwrap();
    assert_eq!(b.lease(24 << 20).map(|reply| reply.added_bytes), Ok(24 << 20));
    assert!(a.has_left(39 << 20));
}

#[test]
fn windows_are_apart_and_stay() {
    let worker = small(|_| {});
    let mut all: Vec<_> = (0..96).map(|_| Placer::bare(worker.local_addr())).collect();
    let mut windows: Vec<_> = all.iter_mut().map(|placer| placer.lease(0).unwrap()).collect();
    for (placer, first) in all.iter_mut().zip(&windows) {
        placer.give_back(first.added_bytes, 0).unwrap();
        let again = placer.lease(0).unwrap();
        placer.give_back(again.added_bytes, 0).unwrap();
        assert_eq!((again.window_start, again.window_bytes), (first.window_start, first.window_bytes));
    }
    let (with, without): (Vec<_>, Vec<_>) = windows.drain(..).partition(|window| window.window_bytes > 0);
    assert!(with.len() > 50 && !without.is_empty());
    assert!(without.iter().all(|none| *none == with_nothing()), "without a window there is nothing to place");
    for a in &with {
        let is_apart = |b: &&MemLeaseReply| {
            a.window_start + a.window_bytes <= b.window_start
                || b.window_start + b.window_bytes <= a.window_start
        };
        assert_eq!(with.iter().filter(is_apart).count(), with.len() - 1);
    }
    // What the others allocate lies elsewhere.
    let mut plain = Peer::hello(worker.local_addr());
    for _ in 0..100 {
        let ptr = plain.malloc(16);
        assert!(
            with.iter().all(
                |window| !(window.window_start..window.window_start + window.window_bytes).contains(&ptr)
            )
        );
    }
    drop(all);
    until("the windows are given back", || {
        Placer::bare(worker.local_addr()).lease(0).unwrap().window_bytes == 1 << 40
    });
}

fn with_nothing() -> MemLeaseReply {
    MemLeaseReply { window_start: 0, window_bytes: 0, added_bytes: 0, added_allocations: 0 }
}

#[test]
fn a_lease_counts_against_the_sessions_limits() {
    let worker = small(|config| {
        config.session.memory_max_bytes = 1000;
        config.session.handles_max = 12;
    });
    let mut a = Placer::bare(worker.local_addr());
    let ptr = a.peer.malloc(400);
    assert_eq!(a.lease(601).map(drop), FULL);
    let lease = a.lease(0).unwrap();
    assert_eq!((lease.added_bytes, lease.added_allocations), (300, 2));
    a.start = lease.window_start;
    assert_eq!(a.free_bytes(), 600, "as without a lease");
    assert_eq!(a.peer.call(&Malloc { size: 301, flags: 0 }).map(drop), FULL);
    assert_eq!(a.lease(301).map(drop), FULL);
    assert_eq!(a.lease(300).map(|lease| (lease.added_bytes, lease.added_allocations)), Ok((300, 2)));
    assert_eq!(a.peer.call(&Malloc { size: 1, flags: 0 }).map(drop), FULL);
    a.place(0, 600).unwrap();
    assert_eq!(a.free_bytes(), 0);
    // Of the 12 handles the session has two, and may place three more.
    for _ in 0..7 {
        a.peer.event_create();
    }
    assert_eq!(a.peer.call(&EventCreate { flags: 0 }).map(drop), FULL);
    a.free(a.start).unwrap();
    for page in 0..4 {
        a.place(2 * page, 1).unwrap();
    }
    assert_eq!(a.place(10, 1).map(drop), FULL, "bytes are left, allocations are not");
    assert_eq!(a.lease(1).map(drop), FULL);
    a.free(a.start).unwrap();
    assert_eq!(a.give_back(0, 2), INVALID);
    a.give_back(0, 1).unwrap();
    a.peer.event_create();
    a.free(ptr).unwrap();
    assert_eq!(a.lease(1).map(|lease| lease.added_allocations), Ok(1), "at least one");
}

#[test]
fn what_others_may_use_does_not_come_back() {
    let worker = small(|_| {});
    let (mut a, mut b) = (Placer::new(worker.local_addr(), 3000), Placer::bare(worker.local_addr()));
    let shared = a.place(0, 1000).unwrap();
    let handle = a.peer.call(&IpcGetMemHandle { device_ptr: shared }).unwrap().handle;
    let opened = b.peer.call(&IpcOpenMemHandle { handle, flags: 0 }).unwrap().device_ptr;
    assert_eq!(opened, shared, "an address is that of one window");
    a.free(shared).unwrap();
    assert!(a.has_left(2000));
    assert_eq!(b.free_bytes(), TOTAL - 1000, "it is in use");
    b.peer.call(&IpcCloseMemHandle { device_ptr: opened }).unwrap();
    assert_eq!(b.free_bytes(), TOTAL, "nobody's lease has it");
    a.lease(2000).unwrap();
    let late = a.place(2, 1000).unwrap();
    a.peer.call(&FreeAsync { device_ptr: late, stream: 0 }).unwrap();
    until("the stream has freed it", || a.free_bytes() == TOTAL);
    // Asked for in vain, a handle has been asked for.
    let host = MallocAt { device_ptr: a.start + 4 * PAGE, size: 100, kind: HOST, flags: 0 };
    a.peer.call(&host).unwrap();
    assert_eq!(a.peer.call(&IpcGetMemHandle { device_ptr: host.device_ptr }).map(drop), INVALID);
    a.free(host.device_ptr).unwrap();
    for page in [0, 2, 4] {
        assert_eq!(a.place(page, 1).map(drop), INVALID, "an address that may be in use is not used again");
    }
    assert_eq!(a.place(6, 1), Ok(a.start + 6 * PAGE));
}

#[test]
fn a_reset_ends_the_lease() {
    let worker = small(|_| {});
    let mut a = Placer::new(worker.local_addr(), 32 << 20);
    a.place(0, 16 << 20).unwrap();
    a.peer.call(&DeviceReset {}).unwrap();
    assert_eq!(a.place(0, 1).map(drop), INVALID);
    assert_eq!(a.give_back(1, 0), INVALID);
    let mut b = Peer::hello(worker.local_addr());
    let all = b.malloc(TOTAL);
    b.call(&Free { device_ptr: all }).unwrap();
    let lease = a.lease(5000).unwrap();
    assert_eq!(lease.window_start, a.start, "the window stays");
    a.place(0, 5000).unwrap();
}

#[test]
fn a_session_that_ends_gives_everything_back() {
    let worker = small(|_| {});
    let mut kept = Peer::hello(worker.local_addr());
    for ends_well in [true, false] {
        let mut a = Placer::new(worker.local_addr(), 50 << 20);
        a.place(0, 20 << 20).unwrap();
        if ends_well {
            a.peer.call(&Shutdown {}).unwrap();
        }
        drop(a);
        let all = Malloc { size: TOTAL, flags: 0 };
        until("everything is back", || {
            kept.call(&all).is_ok_and(|reply| kept.call(&Free { device_ptr: reply.device_ptr }).is_ok())
        });
    }
}

#[test]
fn idle_memory_of_pools_is_released_for_a_lease() {
    let (worker, _) = scripted(|config| config.session.memory_max_bytes = 1000);
    let mut a = Placer::bare(worker.local_addr());
    let pool = a.peer.call(&DeviceGetMemPool { device: 0 }).unwrap().mem_pool;
    let keep = MemPoolSetAttribute { mem_pool: pool, attr: 4, reserved: 0, value: u64::MAX };
    a.peer.call(&keep).unwrap();
    let ptr = a.peer.call(&MallocAsync { size: 800, stream: 0 }).unwrap().device_ptr;
    a.peer.call(&FreeAsync { device_ptr: ptr, stream: 0 }).unwrap();
    assert_eq!(a.lease(1000).map(|lease| lease.added_bytes), Ok(1000), "as MALLOC gets it");
}

#[test]
fn a_lease_is_one_of_one_device() {
    let (worker, script) = scripted(|_| {});
    script.set_devices(2);
    let mut a = Placer::bare(worker.local_addr());
    let lease = a.lease(100).unwrap();
    a.start = lease.window_start;
    a.peer.call(&SetDevice { device_id: 1 }).unwrap();
    assert_eq!(a.lease(100), Ok(with_nothing()));
    assert_eq!(a.place(0, 1).map(drop), Err(HipError::INVALID_DEVICE));
    a.peer.call(&SetDevice { device_id: 0 }).unwrap();
    a.place(0, 1).unwrap();
}

#[test]
fn a_lease_that_reports_another_error_grants_nothing() {
    let worker = small(|_| {});
    let mut a = Placer::bare(worker.local_addr());
    a.peer.forget(&Free { device_ptr: 0xdead_0000 }, &[]);
    assert_eq!(a.lease(TOTAL).map(drop), INVALID, "the kept error");
    assert_eq!(a.lease(TOTAL).map(|lease| lease.added_bytes), Ok(TOTAL));
}

#[test]
fn nothing_is_placed_while_a_stream_is_captured() {
    let worker = small(|_| {});
    let mut a = Placer::new(worker.local_addr(), 1000);
    let stream = a.peer.stream_create();
    a.peer.call(&StreamBeginCapture { stream, mode: 0 }).unwrap();
    let refused = Err(HipError::STREAM_CAPTURE_UNSUPPORTED);
    assert_eq!(a.place(0, 10).map(drop), refused);
    assert_eq!(a.lease(10).map(drop), refused);
    assert!(a.has_left(1000));
}
