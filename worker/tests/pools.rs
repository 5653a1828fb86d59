//! Tests of memory pools in stream order, and of memory of the client's process.

mod common;

use common::*;
use hipr_proto::op::*;
use hipr_proto::{HipError, HipResult, Wire};
use hipr_worker::Handle;

const INVALID: HipResult<()> = Err(HipError::INVALID_VALUE);
const NO_HANDLE: HipResult<()> = Err(HipError::INVALID_HANDLE);
const FULL: HipResult<()> = Err(HipError::OUT_OF_MEMORY);

/// HIP API: hipMemPoolAttr.
const FOLLOW_EVENTS: i32 = 1;
const OPPORTUNISTIC: i32 = 2;
const INTERNAL_DEPENDENCIES: i32 = 3;
const RELEASE_THRESHOLD: i32 = 4;
const RESERVED_HIGH: i32 = 6;
const USED_HIGH: i32 = 8;

const MIB: u64 = 1 << 20;

fn create(max_size: u64) -> MemPoolCreate {
    MemPoolCreate { alloc_type: 1, location_type: 1, max_size, ..MemPoolCreate::ZERO }
}

impl Peer {
    fn pool(&mut self, threshold: u64) -> u64 {
        let pool = self.call(&create(0)).unwrap().mem_pool;
        self.set(pool, RELEASE_THRESHOLD, threshold).unwrap();
        pool
    }

    fn set(&mut self, mem_pool: u64, attr: i32, value: u64) -> HipResult<()> {
        self.call(&MemPoolSetAttribute { mem_pool, attr, reserved: 0, value })
    }

    fn attribute(&mut self, mem_pool: u64, attr: i32) -> HipResult<u64> {
        self.call(&MemPoolGetAttribute { mem_pool, attr }).map(|reply| reply.value)
    }

    /// Returns the reserved bytes, their peak, the used bytes and their peak.
    fn numbers(&mut self, pool: u64) -> [u64; 4] {
        [5, 6, 7, 8].map(|attribute| self.attribute(pool, attribute).unwrap())
    }

    fn take(&mut self, mem_pool: u64, size: u64, stream: u64) -> HipResult<u64> {
        self.call(&MallocFromPoolAsync { size, mem_pool, stream }).map(|reply| reply.device_ptr)
    }

    fn give(&mut self, device_ptr: u64, stream: u64) -> HipResult<()> {
        self.call(&FreeAsync { device_ptr, stream })
    }

    fn free_bytes(&mut self) -> u64 {
        self.call(&MemGetInfo {}).unwrap().free_bytes
    }
}

/// Starts one worker for each device whose pools the session implements.
fn workers() -> [Handle; 3] {
    [worker("null"), worker("sim"), scripted(|_| {}).0]
}

#[test]
fn a_pool_holds_what_its_threshold_allows() {
    for worker in workers() {
        let mut peer = Peer::hello(worker.local_addr());
        let pool = peer.pool(3 * MIB);
        let stream = peer.stream_create();
        let [a, b] = [peer.take(pool, MIB, stream).unwrap(), peer.take(pool, 2 * MIB, stream).unwrap()];
        assert_eq!(peer.numbers(pool), [3 * MIB; 4]);
        peer.h2d(a, &pattern(MIB as usize, 1), stream);
        assert_eq!(peer.give(a, stream), Ok(()));
        assert_eq!(peer.d2h(a, 1, stream).map(drop), INVALID, "it is not the client's any more");
        assert_eq!(peer.numbers(pool), [3 * MIB, 3 * MIB, 2 * MIB, 3 * MIB]);
        assert_eq!(peer.take(pool, MIB - 5, stream), Ok(a), "the memory is given out again");
        assert_eq!(peer.d2h(a, MIB, stream).map(drop), INVALID, "as long as was asked for");
        assert_eq!(peer.numbers(pool), [3 * MIB, 3 * MIB, 3 * MIB - 5, 3 * MIB]);
        assert_ne!(peer.take(pool, MIB / 4, stream), Ok(a), "it is in use");
        for highest in [RESERVED_HIGH, USED_HIGH] {
            assert_eq!(peer.set(pool, highest, 1), INVALID);
            assert_eq!(peer.set(pool, highest, 0), Ok(()));
        }
        let used = 3 * MIB - 5 + MIB / 4;
        assert_eq!(peer.numbers(pool), [3 * MIB + MIB / 4, 0, used, 0]);
        // What is above the threshold goes back when the stream is synchronized, what is not stays.
        assert_eq!(peer.give(b, stream), Ok(()));
        assert_eq!(peer.numbers(pool)[0], 3 * MIB + MIB / 4);
        assert_eq!(peer.call(&StreamSynchronize { stream }), Ok(()));
        assert_eq!(peer.numbers(pool)[0], MIB + MIB / 4);
        assert_eq!(peer.give(a, stream), Ok(()));
        assert_eq!(peer.call(&StreamSynchronize { stream }), Ok(()));
        assert_eq!(peer.numbers(pool), [MIB + MIB / 4, 0, MIB / 4, 0]);
        let trim = MemPoolTrimTo { mem_pool: pool, min_bytes_to_hold: MIB };
        assert_eq!(peer.call(&trim), Ok(()));
        assert_eq!(peer.numbers(pool)[0], MIB / 4, "what is in use stays");
        peer.take(pool, MIB / 2, stream).unwrap();
        assert_eq!(peer.numbers(pool), [MIB / 4 + MIB / 2; 4], "highest values are noted again");
    }
}

/// The default pool has a threshold of 0, so that freed memory goes back to the device at once.
#[test]
fn the_default_pool_counts_and_holds_nothing() {
    for worker in workers() {
        let mut peer = Peer::hello(worker.local_addr());
        let free = peer.free_bytes();
        let ptr = peer.call(&MallocAsync { size: MIB, stream: 0 }).unwrap().device_ptr;
        let default = peer.call(&DeviceGetDefaultMemPool { device: 0 }).unwrap().mem_pool;
        assert_eq!(peer.call(&DeviceGetMemPool { device: 0 }).unwrap().mem_pool, default);
        assert_eq!(peer.numbers(default), [MIB; 4]);
        let attribute = PointerGetAttribute { ptr, attribute: 17, reserved: 0 };
        assert_eq!(peer.call(&attribute).unwrap().data, default, "HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE");
        assert_eq!(peer.give(ptr, 0), Ok(()));
        peer.call(&DeviceSynchronize {}).unwrap();
        assert_eq!((peer.numbers(default), peer.free_bytes()), ([0, MIB, 0, MIB], free));
        assert_eq!(peer.call(&MemPoolDestroy { mem_pool: default }), INVALID);
        // hipFree takes what is a pool's, too.
        let ptr = peer.take(default, MIB, 0).unwrap();
        assert_eq!(peer.call(&Free { device_ptr: ptr }), Ok(()));
        assert_eq!((peer.numbers(default)[0], peer.free_bytes()), (0, free));
        assert_eq!(peer.call(&DeviceGetAttribute { device_id: 0, attribute: 88 }).unwrap().value, 1);
    }
}

#[test]
fn what_was_allocated_outlives_its_pool() {
    for worker in workers() {
        let mut peer = Peer::hello(worker.local_addr());
        let free = peer.free_bytes();
        let pool = peer.pool(u64::MAX);
        let default = peer.call(&DeviceGetDefaultMemPool { device: 0 }).unwrap().mem_pool;
        assert_eq!(peer.call(&DeviceSetMemPool { device: 0, reserved: 0, mem_pool: pool }), Ok(()));
        assert_eq!(peer.call(&DeviceGetMemPool { device: 0 }).unwrap().mem_pool, pool);
        let [kept, held] =
            [MIB, 2 * MIB].map(|size| peer.call(&MallocAsync { size, stream: 0 }).unwrap().device_ptr);
        assert_eq!(peer.numbers(pool)[0], 3 * MIB, "hipMallocAsync takes from the current pool");
        peer.give(held, 0).unwrap();
        assert_eq!(peer.numbers(pool), [3 * MIB, 3 * MIB, MIB, 3 * MIB]);
        assert_eq!(peer.call(&MemPoolDestroy { mem_pool: pool }), Ok(()));
        peer.call(&DeviceSynchronize {}).unwrap();
        assert_eq!(free - peer.free_bytes(), MIB, "what was held is given back");
        assert_eq!(peer.call(&DeviceGetMemPool { device: 0 }).unwrap().mem_pool, default);
        peer.h2d(kept, b"still here", 0);
        assert_eq!(peer.d2h(kept, 10, 0).map(|bytes| bytes.len()), Ok(10));
        assert_eq!(peer.give(kept, 0), Ok(()));
        peer.call(&DeviceSynchronize {}).unwrap();
        assert_eq!(peer.free_bytes(), free);
    }
}

/// Freed memory is reused by another stream only in an order that is safe.
#[test]
fn memory_passes_between_streams_as_the_pool_allows() {
    let (worker, script) = scripted(|_| {});
    let mut peer = Peer::hello(worker.local_addr());
    let (one, other) = (peer.stream_create(), peer.stream_create());
    let pool = peer.call(&create(2 * MIB)).unwrap().mem_pool;
    peer.set(pool, RELEASE_THRESHOLD, u64::MAX).unwrap();
    let ptr = peer.take(pool, MIB, one).unwrap();
    script.hold(0, one);
    peer.call(&Memset { dst: ptr, value: 1, size: MIB, stream: one }).unwrap();
    peer.give(ptr, one).unwrap();

    let fresh = peer.take(pool, MIB, other).unwrap();
    assert_ne!(fresh, ptr, "the work of the stream that freed it is not done, and there is other memory");
    assert_eq!(peer.call(&MemPoolTrimTo { mem_pool: pool, min_bytes_to_hold: 0 }), Ok(()));
    assert_eq!(peer.numbers(pool)[0], 2 * MIB, "nor does a trim take it");
    assert_eq!(script.calls("stream_wait_event"), 0);
    assert_eq!(peer.take(pool, MIB, other), Ok(ptr), "the pool may have no more");
    assert_eq!(script.calls("stream_wait_event"), 1, "it waits for what the one stream has to do");
    assert_eq!(script.live().events, 0);
    script.release(0, one);
    assert_eq!(peer.call(&StreamSynchronize { stream: other }), Ok(()));
    assert_eq!(peer.give(fresh, other), Ok(()));
    assert_eq!(peer.call(&MemPoolTrimTo { mem_pool: pool, min_bytes_to_hold: 0 }), Ok(()));

    peer.give(ptr, other).unwrap();
    peer.set(pool, FOLLOW_EVENTS, 0).unwrap();
    peer.set(pool, OPPORTUNISTIC, 0).unwrap();
    let third = peer.take(pool, MIB, one).unwrap();
    assert_ne!(third, ptr, "only the stream itself may have it");
    peer.set(pool, OPPORTUNISTIC, 1).unwrap();
    assert_eq!(peer.take(pool, MIB, one), Ok(ptr), "the other stream is done");

    // What a stream freed that is gone is anybody's whose work it does not run into.
    script.hold(0, other);
    peer.call(&Memset { dst: ptr, value: 1, size: MIB, stream: other }).unwrap();
    peer.give(ptr, other).unwrap();
    peer.call(&StreamDestroy { stream: other }).unwrap();
    peer.set(pool, INTERNAL_DEPENDENCIES, 0).unwrap();
    assert_eq!(peer.numbers(pool), [2 * MIB, 2 * MIB, MIB, 2 * MIB]);
    script.release(0, other);
    assert_eq!(peer.take(pool, MIB, one), Ok(ptr));
}

/// Freed memory is reused by another stream that waits for an event of the freeing stream, or that the null stream orders
/// behind it.
#[test]
fn memory_follows_the_order_of_events() {
    let (worker, script) = scripted(|_| {});
    let mut peer = Peer::hello(worker.local_addr());
    let mut free_stream =
        || peer.call(&StreamCreateWithFlags(StreamCreate { flags: 1, priority: 0 })).unwrap().stream;
    let (one, two, three) = (free_stream(), free_stream(), free_stream());
    let blocking = peer.stream_create();
    let pool = peer.pool(u64::MAX);
    let (early, late) = (peer.event_create(), peer.event_create());
    let ptr = peer.take(pool, MIB, one).unwrap();
    script.hold(0, one);
    peer.call(&Memset { dst: ptr, value: 1, size: MIB, stream: one }).unwrap();
    peer.call(&EventRecord { event: early, stream: one }).unwrap();
    peer.give(ptr, one).unwrap();
    peer.call(&EventRecord { event: late, stream: one }).unwrap();
    peer.call(&StreamWaitEvent { stream: two, event: early, flags: 0 }).unwrap();
    let takes = |peer: &mut Peer, stream, wanted: bool, why: &str| {
        let taken = peer.take(pool, MIB, stream).unwrap();
        assert_eq!(taken == ptr, wanted, "{why}");
        if wanted {
            peer.give(ptr, stream).unwrap();
        }
    };
    takes(&mut peer, two, false, "the event was recorded before the free");
    peer.call(&StreamWaitEvent { stream: two, event: late, flags: 0 }).unwrap();
    peer.set(pool, FOLLOW_EVENTS, 0).unwrap();
    takes(&mut peer, two, false, "the pool does not follow events");
    peer.set(pool, FOLLOW_EVENTS, 1).unwrap();
    takes(&mut peer, two, true, "the stream waits for the free");
    takes(&mut peer, three, false, "this one does not");
    peer.call(&EventRecord { event: early, stream: two }).unwrap();
    peer.call(&StreamWaitEvent { stream: three, event: early, flags: 0 }).unwrap();
    takes(&mut peer, three, true, "it does, by way of the other");
    takes(&mut peer, 0, false, "the null stream waits for no such stream");
    peer.call(&StreamWaitEvent { stream: blocking, event: early, flags: 0 }).unwrap();
    peer.call(&EventRecord { event: late, stream: three }).unwrap();
    peer.call(&StreamWaitEvent { stream: blocking, event: late, flags: 0 }).unwrap();
    takes(&mut peer, 1, true, "but for blocking ones it does");
    takes(&mut peer, 2, true, "and they for it");
    script.release(0, one);
}

#[test]
fn what_is_held_counts_and_makes_room() {
    let (worker, script) = scripted(|config| config.session.memory_max_bytes = 12 * MIB);
    let mut peer = Peer::hello(worker.local_addr());
    let pool = peer.pool(u64::MAX);
    let ptr = peer.take(pool, 8 * MIB, 0).unwrap();
    assert_eq!(peer.take(pool, 5 * MIB, 0).map(drop), FULL);
    peer.give(ptr, 0).unwrap();
    assert_eq!(peer.free_bytes(), 4 * MIB, "held memory is the session's");
    assert_eq!(script.live().allocations, 1);
    assert_ne!(peer.malloc(9 * MIB), 0);
    assert_eq!(peer.numbers(pool)[0], 0, "it was given back for that");

    let small = peer.call(&create(MIB)).unwrap().mem_pool;
    peer.set(small, RELEASE_THRESHOLD, u64::MAX).unwrap();
    assert_eq!(peer.take(small, MIB + 1, 0).map(drop), FULL, "more than the pool may have");
    let ptr = peer.take(small, MIB / 2 + 1, 0).unwrap();
    assert_eq!(peer.take(small, MIB / 2, 0).map(drop), FULL);
    peer.give(ptr, 0).unwrap();
    assert_ne!(peer.take(small, MIB, 0), Ok(ptr), "another one in its place");
    assert_eq!(peer.numbers(small), [MIB; 4]);
}

/// Idle blocks count as handles, so that small blocks are not kept without limit.
#[test]
fn what_is_held_counts_as_handles() {
    let (worker, script) = scripted(|config| config.session.handles_max = 8);
    let mut peer = Peer::hello(worker.local_addr());
    let pool = peer.pool(u64::MAX);
    for round in 0..20 {
        let ptr = peer.take(pool, 1 << round, 0).unwrap();
        peer.give(ptr, 0).unwrap();
        assert!(script.live().allocations < 8, "round {round}");
    }
}

#[test]
fn what_is_no_pool_is_refused() {
    let (worker, _) = scripted(|config| config.session.handles_max = 4);
    let (mut peer, mut other) = (Peer::hello(worker.local_addr()), Peer::hello(worker.local_addr()));
    let refused = |peer: &mut Peer, request| peer.call::<MemPoolCreate>(&request).map(drop);
    assert_eq!(refused(&mut peer, MemPoolCreate { alloc_type: 0, ..create(0) }), INVALID);
    assert_eq!(refused(&mut peer, MemPoolCreate { location_type: 2, ..create(0) }), INVALID);
    assert_eq!(refused(&mut peer, MemPoolCreate { location_id: 1, ..create(0) }), INVALID);
    let exported = MemPoolCreate { handle_types: 1, ..create(0) };
    assert_eq!(refused(&mut peer, exported), Err(HipError::NOT_SUPPORTED));
    let theirs = (0..3).map(|_| other.pool(0)).max().unwrap();
    for mem_pool in [0, 1, theirs, u64::MAX] {
        assert_eq!(peer.take(mem_pool, 1, 0).map(drop), NO_HANDLE);
        assert_eq!(peer.attribute(mem_pool, 4).map(drop), NO_HANDLE);
        assert_eq!(peer.set(mem_pool, 4, 1), NO_HANDLE);
        assert_eq!(peer.call(&MemPoolTrimTo { mem_pool, min_bytes_to_hold: 0 }), NO_HANDLE);
        assert_eq!(peer.call(&DeviceSetMemPool { device: 0, reserved: 0, mem_pool }), NO_HANDLE);
        assert_eq!(peer.call(&MemPoolDestroy { mem_pool }), NO_HANDLE);
    }
    let pool = peer.pool(0);
    for device in [-1, 1] {
        let no_device = Err(HipError::INVALID_DEVICE);
        assert_eq!(peer.call(&DeviceGetDefaultMemPool { device }).map(drop), no_device);
        assert_eq!(peer.call(&DeviceGetMemPool { device }).map(drop), no_device);
        assert_eq!(peer.call(&DeviceSetMemPool { device, reserved: 0, mem_pool: pool }), no_device);
    }
    for attribute in [0, 9, -1] {
        assert_eq!(peer.attribute(pool, attribute).map(drop), INVALID);
        assert_eq!(peer.set(pool, attribute, 0), INVALID);
    }
    assert_eq!(peer.set(pool, 5, 0), INVALID, "what is reserved cannot be set");
    assert_eq!(peer.take(pool, 1, 77).map(drop), NO_HANDLE, "no stream");
    assert_eq!(peer.take(pool, 0, 0), Ok(0), "nothing is the null pointer");
    for _ in 0..3 {
        peer.pool(0);
    }
    assert_eq!(refused(&mut peer, create(0)), FULL, "pools count as handles");
    peer.call(&DeviceReset {}).unwrap();
    assert_eq!(peer.attribute(pool, 4).map(drop), NO_HANDLE, "a reset takes the pools");
}

#[test]
fn registered_memory_has_a_place_on_the_worker() {
    for worker in workers() {
        let mut peer = Peer::hello(worker.local_addr());
        let free = peer.free_bytes();
        let register = |host_ptr, size_bytes| HostRegister { host_ptr, size_bytes, flags: 0 };
        let place = |peer: &mut Peer, host_ptr| {
            peer.call(&HostGetDevicePointer { host_ptr, flags: 0 }).map(|reply| reply.device_ptr)
        };
        const HERE: u64 = 0x7fff_0000_1000;
        assert_eq!(peer.call(&register(HERE, 0x2000)), Ok(()));
        for (host_ptr, size) in [(HERE, 1), (HERE + 0x1fff, 1), (HERE - 1, 2), (HERE - 1, 0x4000)] {
            let again = peer.call(&register(host_ptr, size));
            assert_eq!(again, Err(HipError::HOST_MEMORY_ALREADY_REGISTERED), "{host_ptr:#x} {size}");
        }
        for (host_ptr, size) in [(HERE - 1, 1), (HERE + 0x2000, 1)] {
            assert_eq!(peer.call(&register(host_ptr, size)), Ok(()), "beside it");
        }
        for wrong in [register(0, 1), register(1, 0), register(u64::MAX, 2)] {
            assert_eq!(peer.call(&wrong), INVALID);
        }
        assert_eq!(peer.call(&HostRegister { flags: 0x10, ..register(1, 1) }), INVALID);

        let there = place(&mut peer, HERE).unwrap();
        assert_eq!(place(&mut peer, HERE + 0x1fff), Ok(there + 0x1fff));
        assert_eq!(peer.call(&PointerGetAttributes { ptr: there }).unwrap().memory_type, 1, "host memory");
        assert_eq!(peer.call(&Free { device_ptr: there }), INVALID, "it is not freed but unregistered");
        assert_eq!(peer.call(&FreeHost { device_ptr: there }), INVALID);
        peer.h2d(there, &pattern(0x2000, 5), 0);
        assert_eq!(peer.d2h(there, 0x2000, 0).map(|bytes| bytes.len()), Ok(0x2000));

        let not_registered = Err(HipError::HOST_MEMORY_NOT_REGISTERED);
        assert_eq!(peer.call(&HostUnregister { host_ptr: HERE + 1 }), not_registered);
        for host_ptr in [HERE, HERE - 1, HERE + 0x2000] {
            assert_eq!(peer.call(&HostUnregister { host_ptr }), Ok(()));
            assert_eq!(peer.call(&HostUnregister { host_ptr }), not_registered);
        }
        assert_eq!(place(&mut peer, HERE).map(drop), INVALID);
        assert_eq!(peer.free_bytes(), free);
    }
}
