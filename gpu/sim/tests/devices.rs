//! Tests of several devices: memory, streams and errors of each, and what connects them.

mod session;

use std::num::NonZero;

use hipr_device::{Context as _, MemoryKind, Region, WaitFor};
use hipr_proto::{HipError, HipResult};
use hipr_sim::{Config, Gpu};
use session::{Gate, LEVELS, Session, Values};

const NON_BLOCKING: u32 = 1;
const NOT_READY: HipResult<()> = Err(HipError::NOT_READY);
const MEMORY_BYTES: u64 = 64 << 20;

/// Creates so many devices with two threads.
fn gpus(devices: usize) -> Gpu {
    let memory_bytes = Some(MEMORY_BYTES);
    let (devices, threads) = (NonZero::new(devices), NonZero::new(2));
    Gpu::new(Config { devices, threads, memory_bytes, ..Config::default() }).unwrap()
}

fn enter(session: &mut Session, device: i32) {
    session.context.set_device(device).unwrap();
    assert_eq!(session.context.device(), device);
}

fn fill(session: &mut Session, ptr: u64, value: u32, stream: u64) {
    session.context.fill(Region::flat(ptr, 4), value, 4, stream).unwrap();
}

#[test]
fn devices_are_numbered_and_told_apart() {
    let gpu = gpus(3);
    let mut session = Session::open(&gpu);
    assert_eq!((session.context.device_count(), session.context.device()), (Ok(3), 0));
    for wrong in [-1, 3, i32::MAX, i32::MIN] {
        assert_eq!(session.context.set_device(wrong), Err(HipError::INVALID_DEVICE));
        assert_eq!(session.context.properties(wrong).map(drop), Err(HipError::INVALID_DEVICE));
        assert_eq!(session.context.can_access_peer(0, wrong), Err(HipError::INVALID_DEVICE));
    }
    let uuids: Vec<_> = (0..3).map(|device| session.context.uuid(device).unwrap()).collect();
    assert!(uuids[0] != uuids[1] && uuids[1] != uuids[2] && uuids[0] != uuids[2]);
    let buses: Vec<_> = (0..3).map(|device| session.context.properties(device).unwrap().pci_bus_id).collect();
    assert_eq!([buses[1] - buses[0], buses[2] - buses[1]], [1, 1]);
    for device in 0..3 {
        let bus = session.context.attribute(device, hipr_abi::hipDeviceAttributePciBusId);
        assert_eq!(bus, Ok(buses[device as usize]));
    }
    let most = Config { devices: NonZero::new(Config::DEVICES_MAX + 1), ..Config::default() };
    assert_eq!(Gpu::new(most).unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
}

#[test]
fn each_device_has_memory_of_its_own() {
    let gpu = gpus(2);
    let mut session = Session::open(&gpu);
    let first = session.malloc(MEMORY_BYTES);
    let refused = session.context.malloc(1, MemoryKind::Device, 0);
    assert_eq!(refused, Err(HipError::OUT_OF_MEMORY));
    assert_eq!(session.context.mem_info(), Ok((0, MEMORY_BYTES)));
    enter(&mut session, 1);
    assert_eq!(session.context.mem_info(), Ok((MEMORY_BYTES, MEMORY_BYTES)));
    let second = session.malloc(MEMORY_BYTES / 2);
    assert!(second >= first + MEMORY_BYTES || second + MEMORY_BYTES / 2 <= first, "one set of addresses");
    // It goes back to the device that had it.
    session.wait(|context| context.poll_free(first)).unwrap();
    assert_eq!(session.context.mem_info(), Ok((MEMORY_BYTES / 2, MEMORY_BYTES)));
    enter(&mut session, 0);
    assert_eq!(session.context.mem_info(), Ok((MEMORY_BYTES, MEMORY_BYTES)));
    // The same with bytes that were reserved.
    let window = session.context.address_window().unwrap();
    session.context.reserve(100).unwrap();
    enter(&mut session, 1);
    assert_eq!(session.context.address_window(), Ok(window.clone()), "the client has one window");
    let refused = session.context.malloc_at(window.start, 100, MemoryKind::Device, 0);
    assert_eq!(refused, Err(HipError::OUT_OF_MEMORY), "those of the other device are reserved");
    enter(&mut session, 0);
    session.context.malloc_at(window.start, 100, MemoryKind::Device, 0).unwrap();
    enter(&mut session, 1);
    session.wait(|context| context.poll_free_reserved(window.start)).unwrap();
    session.context.unreserve(u64::MAX).unwrap();
    assert_eq!(session.context.reservable(), Ok(MEMORY_BYTES / 2));
    enter(&mut session, 0);
    assert_eq!(session.context.reservable(), Ok(MEMORY_BYTES - 100), "they are the first one's");
}

/// Every stream of one device against every stream of the other and of the same one.
#[test]
fn streams_of_different_devices_do_not_wait_for_each_other() {
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Kind {
        Null,
        PerThread,
        Blocking,
        NonBlocking,
    }
    use Kind::{Blocking, NonBlocking, Null, PerThread};
    let kinds = [Null, PerThread, Blocking, NonBlocking];
    let gpu = gpus(2);
    for first in kinds {
        for second in kinds {
            for other in [0, 1] {
                let mut session = Session::open(&gpu);
                let stream = |session: &mut Session, kind| match kind {
                    Null => 0,
                    PerThread => 2,
                    Blocking => session.context.stream_create(0, 0).unwrap(),
                    NonBlocking => session.context.stream_create(NON_BLOCKING, 0).unwrap(),
                };
                let word = session.buffer(&[0]);
                let a = stream(&mut session, first);
                let gate = Gate::close(&mut session, a);
                enter(&mut session, other);
                let b = stream(&mut session, second);
                fill(&mut session, word, 1, b);
                let is_joined = match (first, second) {
                    (Null, Null) | (PerThread, PerThread) => true,
                    (Null, second) => second != NonBlocking,
                    (first, Null) => first != NonBlocking,
                    _ => false,
                };
                let waits = other == 0 && is_joined;
                let what = format!("{first:?}, then {second:?} on device {other}");
                let query = session.context.query(WaitFor::Stream(b));
                if waits {
                    assert_eq!(query, NOT_READY, "{what}");
                } else {
                    session.sync(WaitFor::Stream(b)).unwrap();
                    assert_eq!(session.read(word, 1), [1], "{what}");
                }
                if other == 1 {
                    session.sync(WaitFor::Device).unwrap();
                }
                enter(&mut session, 0);
                assert_eq!(session.context.query(WaitFor::Device), NOT_READY, "{what}");
                gate.open(&mut session);
                session.sync(WaitFor::Device).unwrap();
                enter(&mut session, other);
                session.sync(WaitFor::Stream(b)).unwrap();
                assert_eq!(session.read(word, 1), [1], "{what}");
            }
        }
    }
}

#[test]
fn events_and_frees_go_from_device_to_device() {
    let gpu = gpus(2);
    let mut session = Session::open(&gpu);
    let (word, copy) = (session.buffer(&[0]), session.malloc(4));
    let gate = Gate::close(&mut session, 0);
    fill(&mut session, word, 7, 0);
    let event = session.context.event_create(0).unwrap();
    session.context.event_record(event, 0).unwrap();
    let kernel = session.context.module_load(LEVELS[1].1.to_vec()).unwrap();
    enter(&mut session, 1);
    session.context.stream_wait_event(0, event, 0).unwrap();
    session.context.copy(Region::flat(copy, 4), Region::flat(word, 4), 0).unwrap();
    assert_eq!(session.context.query(WaitFor::Event(event)), NOT_READY);
    // Both wait for the work of all devices.
    assert!(session.context.poll_free(word).is_pending());
    session.context.module_unload(kernel).unwrap();
    gate.open(&mut session);
    session.sync(WaitFor::Device).unwrap();
    assert_eq!(session.read(copy, 1), [7]);
    session.wait(|context| context.poll_free(word)).unwrap();
    enter(&mut session, 0);
    session.sync(WaitFor::Device).unwrap();
}

/// Which kernels reach which memory, before, with and after access to a peer's memory.
#[test]
fn kernels_reach_what_their_device_may_reach() {
    let gpu = gpus(2);
    for kind in [MemoryKind::Device, MemoryKind::Host, MemoryKind::Managed] {
        for owner in [0, 1] {
            let mut session = Session::open(&gpu);
            let kernels = [0, 1].map(|device| {
                enter(&mut session, device);
                session.kernel(LEVELS[1].1, "count")
            });
            enter(&mut session, owner);
            let before = session.context.malloc(64, kind, 0).unwrap();
            let count = |session: &mut Session, ptr: u64| {
                let values = Values::new().u64(ptr).u64(ptr + 8).u64(1);
                [0, 1].map(|device| {
                    enter(session, device);
                    session.launch(kernels[device as usize], 1, 64, &values).unwrap();
                    session.sync(WaitFor::Device)
                })
            };
            let other = 1 - owner;
            let reaches = |may: bool| {
                let mut expected = [Ok(()); 2];
                if kind == MemoryKind::Device && !may {
                    expected[other as usize] = Err(HipError::ILLEGAL_ADDRESS);
                }
                expected
            };
            assert_eq!(count(&mut session, before), reaches(false), "{kind:?} of {owner}");
            enter(&mut session, other);
            assert_eq!(session.context.set_peer_access(owner, false), Err(HipError::PEER_ACCESS_NOT_ENABLED));
            assert_eq!(session.context.set_peer_access(other, true), Err(HipError::INVALID_DEVICE));
            session.context.set_peer_access(owner, true).unwrap();
            assert_eq!(
                session.context.set_peer_access(owner, true),
                Err(HipError::PEER_ACCESS_ALREADY_ENABLED)
            );
            enter(&mut session, owner);
            let later = session.context.malloc(64, kind, 0).unwrap();
            for ptr in [before, later] {
                assert_eq!(count(&mut session, ptr), reaches(true), "{kind:?} of {owner}");
            }
            enter(&mut session, other);
            session.context.set_peer_access(owner, false).unwrap();
            for ptr in [before, later] {
                assert_eq!(count(&mut session, ptr), reaches(false), "{kind:?} of {owner}");
            }
        }
    }
}

#[test]
fn errors_are_those_of_the_device() {
    let gpu = gpus(2);
    let mut session = Session::open(&gpu);
    let kernel = session.kernel(LEVELS[1].1, "count");
    enter(&mut session, 1);
    let values = Values::new().u64(16).u64(16).u64(1);
    assert_eq!(session.launch(kernel, 1, 64, &values), Err(HipError::INVALID_DEVICE), "it is the other's");
    let kernel = session.kernel(LEVELS[1].1, "count");
    let stream = session.context.stream_create(0, 0).unwrap();
    for on in [0, stream] {
        session.launch_on(on, kernel, 1, 64, &values).unwrap();
        enter(&mut session, 0);
        assert_eq!(session.sync(WaitFor::Device), Ok(()));
        assert_eq!(session.sync(WaitFor::Stream(0)), Ok(()));
        enter(&mut session, 1);
        assert_eq!(session.sync(WaitFor::Device), Err(HipError::ILLEGAL_ADDRESS));
        assert_eq!(session.sync(WaitFor::Device), Ok(()), "it is told once");
    }
    // A stream means its device, whichever is current.
    enter(&mut session, 0);
    session.launch_on(stream, kernel, 1, 64, &values).unwrap();
    assert_eq!(session.sync(WaitFor::Stream(stream)), Err(HipError::ILLEGAL_ADDRESS));
    let failure = session.context.take_failure().unwrap();
    assert_eq!(failure.stream, stream);
    session.launch(kernel, 1, 64, &values).unwrap_err();
    enter(&mut session, 1);
    session.launch(kernel, 1, 64, &values).unwrap();
    assert_eq!(session.sync(WaitFor::Stream(1)), Err(HipError::ILLEGAL_ADDRESS));
    assert_eq!(session.context.take_failure().unwrap().stream, 0, "its handle");
}

#[test]
fn mappings_are_reached_by_the_devices_that_were_given_access() {
    const PAGE: u64 = 2 << 20;
    const READ_WRITE: u32 = 3;
    let gpu = gpus(2);
    let mut session = Session::open(&gpu);
    let kernels = [0, 1].map(|device| {
        enter(&mut session, device);
        session.kernel(LEVELS[1].1, "count")
    });
    let maps = |session: &mut Session| {
        let mappings = session.context.mappings().unwrap();
        let base = mappings.reserve(2 * PAGE, PAGE, 0).unwrap();
        let physical = [0, 1].map(|device| mappings.create(PAGE, device).unwrap());
        mappings.map(base, PAGE, physical[0]).unwrap();
        mappings.map(base + PAGE, PAGE, physical[1]).unwrap();
        base
    };
    let free = |session: &mut Session| {
        [0, 1].map(|device| {
            enter(session, device);
            session.context.mem_info().unwrap().0
        })
    };
    let before = free(&mut session);
    let base = maps(&mut session);
    assert_eq!(free(&mut session), before.map(|bytes| bytes - PAGE), "each has a page");
    for given in 0..16u32 {
        let may = |page: u32, device: u32| given >> (2 * page + device) & 1 != 0;
        for page in 0..2 {
            for device in 0..2 {
                let access = if may(page, device) { READ_WRITE } else { 0 };
                let ptr = base + u64::from(page) * PAGE;
                session
                    .wait(|context| {
                        context.mappings().unwrap().poll_set_access(ptr, PAGE, device as i32, access)
                    })
                    .unwrap();
            }
        }
        for page in 0..2 {
            for device in 0..2 {
                enter(&mut session, device as i32);
                let ptr = base + u64::from(page) * PAGE;
                let values = Values::new().u64(ptr).u64(ptr + 8).u64(1);
                session.launch(kernels[device as usize], 1, 64, &values).unwrap();
                let expected = if may(page, device) { Ok(()) } else { Err(HipError::ILLEGAL_ADDRESS) };
                assert_eq!(
                    session.sync(WaitFor::Device),
                    expected,
                    "{given:04b}, page {page}, device {device}"
                );
            }
        }
    }
}
