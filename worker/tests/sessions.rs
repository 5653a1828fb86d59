//! Tests of several clients of one worker: the resources of each, their waits, and what remains after one ends.

mod common;

use common::*;
use hipr_proto::op::*;
use hipr_proto::{HipError, HipResult, ReplyMode, Wire};
use hipr_worker::device::script::{Live, Script};
use hipr_worker::{DispatchOn, Handle};

#[test]
fn a_pending_wait_does_not_hold_up_another_client() {
    for dispatch in [DispatchOn::Inline, DispatchOn::Thread] {
        let (worker, script) = scripted(|config| config.dispatch = dispatch);
        let (mut a, mut b) = (Peer::hello(worker.local_addr()), Peer::hello(worker.local_addr()));
        let ptr = a.malloc(64);
        script.hold(0, 0);
        a.forget(&Memset { dst: ptr, value: 7, size: 64, stream: 0 }, &[]);
        let waiting = a.send(&DeviceSynchronize {}, &[], ReplyMode::Always).unwrap();
        a.flush();
        until("the wait begins", || script.calls("poll_sync") > 0);
        for _ in 0..100 {
            let ptr = b.malloc(1024);
            b.forget(&Memset { dst: ptr, value: 1, size: 1024, stream: 0 }, &[]);
            assert_eq!(b.d2h(ptr, 1024, 0).unwrap(), [1; 1024]);
            b.call(&Free { device_ptr: ptr }).unwrap();
        }
        script.release(0, 0);
        a.reply::<DeviceSynchronize>(waiting).unwrap();
        assert_eq!(a.d2h(ptr, 64, 0).unwrap(), [7; 64]);
    }
}

#[test]
fn a_wait_holds_up_later_requests_of_its_own_session_and_replies_stay_in_order() {
    let (worker, script) = scripted(|_| {});
    let mut a = Peer::hello(worker.local_addr());
    let ptr = a.malloc(64);
    let stream = a.stream_create();
    script.hold(0, stream);
    a.forget(&Memset { dst: ptr, value: 7, size: 64, stream }, &[]);
    let first = a.send(&StreamSynchronize { stream }, &[], ReplyMode::Always).unwrap();
    let second = a.send(&MemGetInfo {}, &[], ReplyMode::Always).unwrap();
    a.flush();
    until("the wait begins", || script.calls("poll_sync") > 0);
    assert_eq!(script.calls("mem_info"), 0);
    script.release(0, stream);
    a.reply::<StreamSynchronize>(first).unwrap();
    a.reply::<MemGetInfo>(second).unwrap();
}

#[test]
fn errors_of_unanswered_requests_are_reported_once_first_wins() {
    let (worker, script) = scripted(|_| {});
    let mut a = Peer::hello(worker.local_addr());
    a.forget(&StreamDestroy { stream: 0xdead }, &[]);
    a.forget(&Free { device_ptr: 0xdead }, &[]);
    assert_eq!(a.call(&Ping {}), Ok(()), "PING reports nothing");
    // What would create something is not carried out when it is the one to report.
    assert_eq!(a.call(&Malloc { size: 64, flags: 0 }), Err(HipError::INVALID_HANDLE));
    assert_eq!(script.calls("malloc"), 0);
    assert_eq!(a.call(&DeviceSynchronize {}), Ok(()));
    assert!(a.call(&Malloc { size: 64, flags: 0 }).is_ok());
}

#[test]
fn an_error_that_surfaces_later_comes_with_the_wait_unless_one_is_kept() {
    let (worker, script) = scripted(|_| {});
    let mut a = Peer::hello(worker.local_addr());
    let ptr = a.malloc(64);
    script.surface(0, 0, HipError::ILLEGAL_ADDRESS);
    assert_eq!(a.call(&DeviceSynchronize {}), Err(HipError::ILLEGAL_ADDRESS));
    assert_eq!(a.call(&DeviceSynchronize {}), Ok(()));

    script.surface(0, 0, HipError::ILLEGAL_ADDRESS);
    assert_eq!(a.d2h(ptr, 64, 0), Err(HipError::ILLEGAL_ADDRESS), "and no bytes");
    assert_eq!(a.d2h(ptr, 64, 0), Ok(vec![0; 64]));

    // The kept error came first; the wait is completed all the same and takes its error along.
    a.forget(&Free { device_ptr: 1 }, &[]);
    a.flush();
    script.surface(0, 0, HipError::ILLEGAL_ADDRESS);
    assert_eq!(a.d2h(ptr, 64, 0), Err(HipError::INVALID_VALUE));
    assert_eq!(a.d2h(ptr, 64, 0), Ok(vec![0; 64]));
}

#[test]
fn a_wait_without_an_answer_keeps_its_error() {
    let (worker, script) = scripted(|_| {});
    let mut a = Peer::hello(worker.local_addr());
    let ptr = a.malloc(64);
    script.surface(0, 0, HipError::ILLEGAL_ADDRESS);
    a.forget(&DeviceSynchronize {}, &[]);
    a.forget(&d2h(ptr, 64, 0), &[]);
    assert_eq!(a.call(&GetLastError {}), Err(HipError::ILLEGAL_ADDRESS));
    assert_eq!(a.call(&GetLastError {}), Ok(()));
}

#[test]
fn nothing_of_another_session_can_be_named() {
    let (worker, script) = scripted(|_| {});
    script.define_kernel("k", 8, &[(0, 8)]);
    script.define_global("g", 32);
    let (mut a, mut b) = (Peer::hello(worker.local_addr()), Peer::hello(worker.local_addr()));
    let (ptr, stream, event, module) = (a.malloc(4096), a.stream_create(), a.event_create(), a.module_load());
    let function = a.function(module, "k");
    let mut name = Vec::new();
    put_name("g", &mut name).unwrap();
    let global = a.call_with(&ModuleGetGlobal { module }, &name).unwrap().device_ptr;
    a.h2d(ptr, &pattern(4096, 1), 0);
    a.h2d(global, &[9; 32], 0);
    a.call(&DeviceSynchronize {}).unwrap();
    let own = b.malloc(4096);
    let before = script.live();

    let value: HipResult<()> = Err(HipError::INVALID_VALUE);
    let handle: HipResult<()> = Err(HipError::INVALID_HANDLE);
    for foreign in [ptr, ptr + 8, global] {
        assert_eq!(b.d2h(foreign, 8, 0).map(drop), value);
        assert_eq!(b.call_with(&h2d(foreign, 8, 0), &[0; 8]), value);
        assert_eq!(b.call(&d2d(own, foreign, 8, 0)), value);
        assert_eq!(b.call(&d2d(foreign, own, 8, 0)), value);
        assert_eq!(b.call(&Memset { dst: foreign, value: 0, size: 8, stream: 0 }), value);
        assert_eq!(b.call(&Free { device_ptr: foreign }), value);
        assert_eq!(b.call(&FreeHost { device_ptr: foreign }), value);
        assert_eq!(b.call(&FreeAsync { device_ptr: foreign, stream: 0 }), value);
        assert_eq!(b.call(&PointerGetAttributes { ptr: foreign }).map(drop), value);
        assert_eq!(b.call(&PointerGetAttribute { ptr: foreign, attribute: 2, reserved: 0 }).map(drop), value);
        assert_eq!(b.call(&MemPtrGetInfo { ptr: foreign }).map(drop), value);
        assert_eq!(b.call(&HostGetDevicePointer { host_ptr: foreign, flags: 0 }).map(drop), value);
    }
    assert_eq!(b.call(&StreamSynchronize { stream }), handle);
    assert_eq!(b.call(&StreamQuery { stream }), handle);
    assert_eq!(b.call(&StreamDestroy { stream }), handle);
    assert_eq!(b.call(&StreamGetFlags { stream }).map(drop), handle);
    assert_eq!(b.call(&StreamGetPriority { stream }).map(drop), handle);
    assert_eq!(b.call(&MallocAsync { size: 8, stream }).map(drop), handle);
    assert_eq!(b.call(&Memset { dst: own, value: 0, size: 8, stream }), handle);
    assert_eq!(b.call(&EventRecord { event, stream: 0 }), handle);
    assert_eq!(b.call(&EventQuery { event }), handle);
    assert_eq!(b.call(&EventSynchronize { event }), handle);
    assert_eq!(b.call(&EventDestroy { event }), handle);
    assert_eq!(b.call(&EventElapsedTime { start_event: event, stop_event: event }).map(drop), handle);
    assert_eq!(b.call(&StreamWaitEvent { stream: 0, event, flags: 0 }), handle);
    assert_eq!(b.call(&ModuleUnload { module }), handle);
    assert_eq!(b.call_with(&ModuleGetFunction { module }, &name).map(drop), handle);
    assert_eq!(b.call_with(&ModuleGetGlobal { module }, &name).map(drop), handle);
    assert_eq!(b.call(&FuncGetAttributes { function }).map(drop), handle);
    assert_eq!(b.call(&launch(function)), handle);
    let mut own_function = launch(function);
    let module = b.module_load();
    own_function.function = b.function(module, "k");
    own_function.num_args = 1;
    let args = [0, 0, 0, 0, 8, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    assert_eq!(b.call_with(&LaunchKernel { stop_event: event, ..own_function }, &args), handle);
    assert_eq!(b.call_with(&LaunchKernel { start_event: event, ..own_function }, &args), handle);
    assert_eq!(b.call_with(&LaunchKernel { stream, ..own_function }, &args), handle);
    assert_eq!(b.call_with(&own_function, &args), Ok(()));

    assert_eq!(script.live(), Live { modules: before.modules + 1, ..before });
    assert_eq!(a.d2h(ptr, 4096, 0).unwrap(), pattern(4096, 1));
    assert_eq!(a.d2h(global, 32, 0).unwrap(), [9; 32]);
}

#[test]
fn what_a_client_owned_goes_with_its_connection() {
    let (worker, script) = scripted(|_| {});
    let mut stays = Peer::hello(worker.local_addr());
    let kept = stays.malloc(16);
    let live = Live { contexts: 1, allocations: 1, ..Live::default() };
    for goes_politely in [true, false] {
        let mut goes = Peer::hello(worker.local_addr());
        goes.malloc(1 << 20);
        goes.stream_create();
        goes.event_create();
        goes.module_load();
        let all = Live { contexts: 2, allocations: 2, streams: 1, events: 1, modules: 1 };
        assert_eq!(script.live(), all);
        if goes_politely {
            goes.call(&Shutdown {}).unwrap();
            assert_eq!(script.live(), live, "released before the answer left");
            assert!(goes.sees_end());
        } else {
            drop(goes);
            until("everything is released", || script.live() == live);
        }
    }
    assert_eq!(stays.d2h(kept, 16, 0).unwrap(), [0; 16]);
    drop(worker);
    assert_eq!(script.live(), Live::default(), "and the rest with the worker");
}

/// Starts the worker's first client, which waits until the script releases stream 0.
fn waiting(worker: &Handle, script: &Script) -> Peer {
    let mut client = Peer::hello(worker.local_addr());
    let ptr = client.malloc(64);
    script.hold(0, 0);
    client.forget(&Memset { dst: ptr, value: 7, size: 64, stream: 0 }, &[]);
    client.forget(&DeviceSynchronize {}, &[]);
    client.flush();
    until("the wait begins", || script.calls("poll_sync") > 0);
    client
}

#[test]
fn a_client_that_goes_behind_a_wait_is_noticed_also_when_nothing_more_is_read() {
    let (worker, script) = scripted(|config| {
        config.limits.linger_ms = 50;
        config.limits.in_flight_max_bytes = 1;
    });
    let mut a = waiting(&worker, &script);
    a.forget(&Ping {}, &[]);
    a.flush();
    drop(a);
    until("the session ends", || script.live() == Live::default());
}

#[test]
fn a_client_that_goes_while_it_waits_is_released() {
    let (worker, script) = scripted(|config| config.limits.linger_ms = 50);
    drop(waiting(&worker, &script));
    until("everything is released", || script.live() == Live::default());
    assert_eq!(worker.stats().io().connections(), 0);
}

#[test]
fn a_client_that_breaks_off_while_nothing_is_read_is_released() {
    let (worker, script) = scripted(|_| {});
    let mut a = Peer::hello(worker.local_addr());
    let ptr = a.malloc(64 << 20);
    script.hold(0, 0);
    a.forget(&Memset { dst: ptr, value: 7, size: 64, stream: 0 }, &[]);
    a.flush();
    // More than the worker takes while the stream is busy.
    let mut stream = a.stream.try_clone().unwrap();
    stream.set_nonblocking(true).unwrap();
    let mut payload = Vec::new();
    h2d(ptr, 64 << 20, 0).put(&mut payload);
    payload.resize(payload.len() + (64 << 20), 1);
    let bytes = message(hipr_proto::Opcode::MEMCPY, 5, hipr_proto::FLAG_NO_REPLY, &payload);
    let (mut sent, mut reads_no_more) = (0, reads_no_more(&worker));
    until("the worker reads no more", || match std::io::Write::write(&mut stream, &bytes[sent..]) {
        Ok(n) => {
            sent += n;
            false
        }
        Err(_) => reads_no_more(),
    });
    // Without a word: the system sends a reset instead of an end.
    socket2::SockRef::from(&stream).set_linger(Some(std::time::Duration::ZERO)).unwrap();
    drop((stream, a));
    until("everything is released", || script.live() == Live::default());
    assert_eq!(worker.stats().io().connections(), 0);
}

#[test]
fn memory_that_cannot_be_read_any_more_is_an_error_of_the_next_reply() {
    let (worker, script) = scripted(|_| {});
    let mut a = Peer::hello(worker.local_addr());
    let ptr = a.malloc(1 << 20);
    a.call(&Memset { dst: ptr, value: 7, size: 1 << 20, stream: 0 }).unwrap();
    script.fail_next("read", HipError::ILLEGAL_STATE);
    // The length was announced, so it is kept: the piece that failed is zeros.
    let bytes = a.d2h(ptr, 1 << 20, 0).unwrap();
    let (failed, rest) = bytes.split_at(hipr_worker::SessionLimits::default().chunk_bytes);
    assert!(failed.iter().all(|&byte| byte == 0) && rest.iter().all(|&byte| byte == 7));
    assert_eq!(a.d2h(ptr, 1 << 20, 0), Err(HipError::ILLEGAL_STATE));
    assert_eq!(a.d2h(ptr, 1 << 20, 0).unwrap(), vec![7; 1 << 20]);
}

#[test]
fn a_client_that_only_stops_sending_gets_its_answers() {
    let (worker, script) = scripted(|_| {});
    let mut a = Peer::hello(worker.local_addr());
    let ptr = a.malloc(1 << 20);
    a.h2d(ptr, &pattern(1 << 20, 3), 0);
    a.call(&Ping {}).unwrap();
    let asked = script.calls("poll_ready");
    script.hold(0, 0);
    a.forget(&Memset { dst: ptr, value: 0, size: 16, stream: 0 }, &[]);
    let read = a.send(&d2h(ptr, 1 << 20, 0), &[], ReplyMode::Always).unwrap();
    a.flush();
    a.stream.shutdown(std::net::Shutdown::Write).unwrap();
    until("the wait begins", || script.calls("fill") > 0 && script.calls("poll_ready") > asked);
    script.release(0, 0);
    let (_, bytes) = a.reply::<Memcpy>(read).unwrap();
    assert_eq!(bytes[..16], [0; 16]);
    assert_eq!(bytes[16..], pattern(1 << 20, 3)[16..]);
    assert!(a.sees_end());
}

#[test]
fn a_device_that_panics_takes_one_session_along() {
    let (worker, script) = scripted(|_| {});
    let (mut a, mut b) = (Peer::hello(worker.local_addr()), Peer::hello(worker.local_addr()));
    a.malloc(64);
    b.malloc(64);
    script.panic_next("mem_info");
    let _unanswered = a.send(&MemGetInfo {}, &[], ReplyMode::Always);
    a.flush();
    assert!(a.sees_end());
    assert!(b.call(&MemGetInfo {}).is_ok());
    until("the session is released", || script.live().contexts == 1);
}

#[test]
fn a_device_reset_waits_and_takes_everything() {
    let (worker, script) = scripted(|_| {});
    let mut a = Peer::hello(worker.local_addr());
    let (ptr, stream, event, module) = (a.malloc(64), a.stream_create(), a.event_create(), a.module_load());
    script.hold(0, stream);
    a.forget(&Memset { dst: ptr, value: 1, size: 64, stream }, &[]);
    let reset = a.send(&DeviceReset {}, &[], ReplyMode::Always).unwrap();
    a.flush();
    until("the wait begins", || script.calls("poll_sync") > 0);
    assert_eq!(script.calls("reset"), 0);
    script.release(0, stream);
    a.reply::<DeviceReset>(reset).unwrap();
    assert_eq!(script.live(), Live { contexts: 1, ..Live::default() });
    assert_eq!(a.call(&Free { device_ptr: ptr }), Err(HipError::INVALID_VALUE));
    assert_eq!(a.call(&StreamQuery { stream }), Err(HipError::INVALID_HANDLE));
    assert_eq!(a.call(&EventQuery { event }), Err(HipError::INVALID_HANDLE));
    assert_eq!(a.call(&ModuleUnload { module }), Err(HipError::INVALID_HANDLE));
    assert_eq!(a.malloc(64) & 0xff, 0);
}

#[test]
fn a_session_has_so_many_handles_and_no_more() {
    let (worker, script) = scripted(|config| config.session.handles_max = 3);
    let mut a = Peer::hello(worker.local_addr());
    let ptr = a.malloc(64);
    a.stream_create();
    a.event_create();
    let full = Err(HipError::OUT_OF_MEMORY);
    assert_eq!(a.call(&Malloc { size: 64, flags: 0 }).map(drop), full);
    assert_eq!(a.call(&StreamCreate { flags: 0, priority: 0 }).map(drop), full);
    assert_eq!(a.call(&EventCreate { flags: 0 }).map(drop), full);
    assert_eq!(a.call_with(&ModuleLoadData { data_size: 1 }, b"x").map(drop), full);
    a.call(&Free { device_ptr: ptr }).unwrap();
    a.event_create();
    assert_eq!(script.live(), Live { contexts: 1, allocations: 0, streams: 1, events: 2, modules: 0 });
}

#[test]
fn a_session_has_so_much_memory_and_no_more() {
    let (worker, script) = scripted(|config| config.session.memory_max_bytes = 1000);
    let mut a = Peer::hello(worker.local_addr());
    let mut b = Peer::hello(worker.local_addr());
    let full = Err(HipError::OUT_OF_MEMORY);
    let free = |peer: &mut Peer| peer.call(&MemGetInfo {}).map(|info| (info.free_bytes, info.total_bytes));
    assert_eq!(free(&mut a), Ok((1000, 1000)));
    let ptr = a.malloc(600);
    a.call(&MallocHost { size: 300, flags: 0 }).unwrap();
    assert_eq!(free(&mut a), Ok((100, 1000)));
    assert_eq!(a.call(&Malloc { size: 101, flags: 0 }).map(drop), full);
    assert_eq!(a.call(&MallocHost { size: 101, flags: 0 }).map(drop), full);
    assert_eq!(a.call(&MallocManaged { size: u64::MAX, flags: 1 }).map(drop), full);
    assert_eq!(a.call(&MallocAsync { size: 101, stream: 0 }).map(drop), full);
    assert_eq!(a.call_with(&ModuleLoadData { data_size: 101 }, &[7; 101]).map(drop), full);
    let mut sizes = [0; 64];
    sizes[..2].copy_from_slice(&[60, 60]);
    assert_eq!(a.call(&MallocBatch { count: 2, pad: 0, sizes }).map(drop), full);
    assert_eq!(free(&mut a), Ok((100, 1000)), "what was refused counts for nothing");
    assert_eq!(b.malloc(1000) & 0xff, 0, "another session has its own");

    let module = a.call_with(&ModuleLoadData { data_size: 100 }, &[7; 100]).unwrap().module;
    assert_eq!(free(&mut a), Ok((0, 1000)));
    a.call(&ModuleUnload { module }).unwrap();
    a.call(&Free { device_ptr: ptr }).unwrap();
    assert_eq!(free(&mut a), Ok((700, 1000)));
    a.call(&DeviceReset {}).unwrap();
    a.malloc(1000);
    assert_eq!(script.live().allocations, 2);
}

#[test]
fn a_batch_is_all_or_nothing() {
    let (worker, script) = scripted(|_| {});
    let mut a = Peer::hello(worker.local_addr());
    let mut sizes = [0; 64];
    sizes[..3].copy_from_slice(&[100, 200, 300]);
    let batch = MallocBatch { count: 3, pad: 0, sizes };
    let reply = a.call(&batch).unwrap();
    assert_eq!(reply.count, 3);
    assert!(reply.ptrs[..3].iter().all(|&ptr| ptr != 0) && reply.ptrs[3..] == [0; 61]);
    let live = Live { contexts: 1, allocations: 3, ..Live::default() };
    assert_eq!(script.live(), live);

    script.fail_next("stream_create", HipError::OUT_OF_MEMORY);
    assert_eq!(a.call(&StreamCreateBatch { count: 2, flags: 0 }).map(drop), Err(HipError::OUT_OF_MEMORY));
    assert_eq!(script.live(), live);
    sizes[1] = u64::MAX;
    assert_eq!(a.call(&MallocBatch { sizes, ..batch }).map(drop), Err(HipError::OUT_OF_MEMORY));
    assert_eq!(script.live(), live, "the first of them was freed again");
    for (count, wrong) in [(65, true), (u32::MAX, true), (0, false)] {
        let expected = if wrong { Err(HipError::INVALID_VALUE) } else { Ok(()) };
        assert_eq!(a.call(&MallocBatch { count, ..batch }).map(drop), expected);
        assert_eq!(a.call(&StreamCreateBatch { count, flags: 0 }).map(drop), expected);
        assert_eq!(a.call(&EventCreateBatch { count, flags: 0 }).map(drop), expected);
    }
    let streams = a.call(&StreamCreateBatch { count: 32, flags: 1 }).unwrap();
    assert_eq!(a.call(&StreamGetFlags { stream: streams.handles[31] }).unwrap().flags, 1);
    let events = a.call(&EventCreateBatch { count: 32, flags: 0 }).unwrap();
    assert!(events.handles.iter().all(|&event| event != 0));
}
