//! Tests of transfers between clients and device memory: bounds, buffered bytes, and order.

mod common;

use common::*;
use hipr_proto::op::*;
use hipr_proto::{HipError, HipResult, ReplyMode, Wire};
use hipr_worker::SessionLimits;
use hipr_worker::device::script::Fault;

const INVALID: HipResult<()> = Err(HipError::INVALID_VALUE);

#[test]
fn bytes_come_back_as_they_went() {
    let (worker, script) = scripted(|_| {});
    let mut a = Peer::hello(worker.local_addr());
    for len in [1, 4095, 4096, 16 << 10, (16 << 10) + 1, 256 << 10, (3 << 20) + 17] {
        let bytes = pattern(len, len as u64);
        let (x, y) = (a.malloc(len as u64), a.malloc(len as u64));
        a.h2d(x, &bytes, 0);
        a.forget(&d2d(y, x, len as u64, 0), &[]);
        assert_eq!(a.d2h(y, len as u64, 0).unwrap(), bytes, "{len}");
    }
    assert_eq!(script.calls("enqueue_write"), 0, "an idle stream's bytes are not held");
    let read = script.calls("read");
    let len = 10 << 20;
    let ptr = a.malloc(len);
    a.d2h(ptr, len, 0).unwrap();
    assert_eq!(script.calls("read") - read, 80, "128 KiB at a time");
}

#[test]
fn bytes_that_a_device_does_not_take_at_once_are_kept() {
    let (worker, script) = scripted(|_| {});
    let mut a = Peer::hello(worker.local_addr());
    for (nth, len) in [(0, 1000), (1, 1 << 20)] {
        let bytes = pattern(len, 5);
        let ptr = a.malloc(len as u64);
        script.plan(0, "poll_write", nth, Fault::Slow(3));
        a.h2d(ptr, &bytes, 0);
        assert_eq!(a.call(&DeviceSynchronize {}), Ok(()));
        assert_eq!(a.d2h(ptr, len as u64, 0).unwrap(), bytes, "{len}");
    }
}

#[test]
fn copies_past_the_end_are_refused() {
    let (worker, script) = scripted(|_| {});
    let mut a = Peer::hello(worker.local_addr());
    let (ptr, other) = (a.malloc(1000), a.malloc(1000));
    for (at, size) in
        [(ptr, 1001), (ptr + 999, 2), (ptr + 1000, 1), (ptr - 1, 1), (0, 1), (u64::MAX, 2), (ptr, u64::MAX)]
    {
        let label = format!("{at:#x} {size}");
        if size < 2000 {
            assert_eq!(a.call_with(&h2d(at, size, 0), &vec![1; size as usize]), INVALID, "{label}");
        }
        assert_eq!(a.d2h(at, size, 0).map(drop), INVALID, "{label}");
        assert_eq!(a.call(&d2d(at, other, size, 0)), INVALID, "{label}");
        assert_eq!(a.call(&d2d(other, at, size, 0)), INVALID, "{label}");
        assert_eq!(a.call(&Memset { dst: at, value: 1, size, stream: 0 }), INVALID, "{label}");
    }
    assert_eq!(a.call(&MemsetD16(Memset { dst: ptr, value: 1, size: 501, stream: 0 })), INVALID);
    assert_eq!(a.call(&MemsetD32(Memset { dst: ptr, value: 1, size: 251, stream: 0 })), INVALID);
    assert_eq!(a.call(&MemsetD32(Memset { dst: ptr, value: 1, size: 1 << 62, stream: 0 })), INVALID);
    assert_eq!(a.d2h(ptr, 1000, 0).unwrap(), [0; 1000], "nothing was written");
    assert_eq!((script.calls("copy"), script.calls("fill")), (0, 0));
    // Nothing at all may be copied anywhere.
    assert_eq!(a.call(&h2d(0, 0, 0)), Ok(()));
    assert_eq!(a.d2h(u64::MAX, 0, 0), Ok(vec![]));
    assert_eq!(a.call(&d2d(0, u64::MAX, 0, 0)), Ok(()));
}

#[test]
fn a_refused_copy_s_bytes_are_skipped() {
    let (worker, _) = scripted(|_| {});
    let mut a = Peer::hello(worker.local_addr());
    let ptr = a.malloc(8);
    let long = pattern(3 << 20, 5);
    a.h2d(ptr, &long, 0);
    a.h2d(0x1234, &long, 0);
    a.h2d(ptr, &[7; 8], 0);
    assert_eq!(a.call(&DeviceSynchronize {}), INVALID);
    assert_eq!(a.d2h(ptr, 8, 0).unwrap(), [7; 8]);
}

#[test]
fn kinds_say_where_the_bytes_are() {
    let (worker, _) = scripted(|_| {});
    let mut a = Peer::hello(worker.local_addr());
    let (x, y) = (a.malloc(8), a.malloc(8));
    let nowhere = Memcpy { dst: x, src: y, size: 8, kind: 0, stream: 0 };
    for wrong in [kind::HOST_TO_HOST, 5, -1, i32::MAX] {
        let copy = Memcpy { kind: wrong, ..nowhere };
        assert_eq!(a.call(&copy), Err(HipError::INVALID_MEMCPY_DIRECTION), "{wrong}");
    }
    a.call_with(&MemcpyHtod(nowhere), b"12345678").unwrap();
    a.call(&MemcpyDtod(Memcpy { dst: y, src: x, ..nowhere })).unwrap();
    a.call_with(&MemcpyHtodAsync(nowhere), b"abcdefgh").unwrap();
    assert_eq!(a.call_inline(&MemcpyDtoh(nowhere), &[]).unwrap().1, b"12345678");
    assert_eq!(a.call_inline(&MemcpyDtohAsync(Memcpy { src: x, ..nowhere }), &[]).unwrap().1, b"abcdefgh");
    a.call(&Memcpy { kind: kind::DEFAULT, ..nowhere }).unwrap();
    assert_eq!(a.d2h(x, 8, 0).unwrap(), b"12345678");
    a.call(&MemcpyPeer { dst: y, dst_device: 0, src: x, src_device: 1, size: 8, stream: 0 }).unwrap_err();
    a.call(&MemcpyPeer { dst: y, dst_device: 0, src: x, src_device: 0, size: 8, stream: 0 }).unwrap();
}

#[test]
fn rows_and_slices_have_gaps_in_memory_and_none_on_the_wire() {
    let (worker, _) = scripted(|_| {});
    let mut a = Peer::hello(worker.local_addr());
    let ptr = a.malloc(1000);
    a.call(&Memset { dst: ptr, value: 0xee, size: 1000, stream: 0 }).unwrap();
    let rows = Memcpy2D {
        dst: ptr + 3,
        dpitch: 100,
        width: 7,
        height: 10,
        kind: kind::HOST_TO_DEVICE,
        ..Wire::ZERO
    };
    let bytes = pattern(70, 1);
    a.call_with(&rows, &bytes).unwrap();
    let mut expected = vec![0xee; 1000];
    for (row, bytes) in bytes.chunks(7).enumerate() {
        expected[row * 100 + 3..][..7].copy_from_slice(bytes);
    }
    assert_eq!(a.d2h(ptr, 1000, 0).unwrap(), expected);
    let back = Memcpy2D { src: ptr + 3, spitch: 100, dst: 0, dpitch: 0, kind: kind::DEVICE_TO_HOST, ..rows };
    assert_eq!(a.call_inline(&Memcpy2DAsync(back), &[]).unwrap().1, bytes);

    let pitch_error: HipResult<()> = Err(HipError::INVALID_PITCH_VALUE);
    assert_eq!(a.call(&Memcpy2D { spitch: 6, ..back }), pitch_error);
    assert_eq!(a.call(&Memcpy2D { height: 11, ..back }), INVALID);
    assert_eq!(a.call(&Memcpy2D { spitch: u64::MAX, ..back }), INVALID);
    assert_eq!(a.call(&Memcpy2D { width: 1 << 40, height: 1 << 40, spitch: 1 << 40, ..back }), INVALID);

    // A box of 5 bytes, 3 rows, 2 slices at (1, 1, 1) of rows of 10 bytes and slices of 6 rows.
    let slices = Memcpy3D {
        dst_ptr: ptr,
        dst_pitch: 10,
        dst_height: 6,
        dst_x: 1,
        dst_y: 1,
        dst_z: 1,
        width: 5,
        height: 3,
        depth: 2,
        kind: kind::HOST_TO_DEVICE,
        ..Wire::ZERO
    };
    let bytes = pattern(30, 2);
    a.call_with(&slices, &bytes).unwrap();
    for (row, bytes) in bytes.chunks(5).enumerate() {
        let (slice, row) = (row / 3, row % 3);
        expected[(slice + 1) * 60 + (row + 1) * 10 + 1..][..5].copy_from_slice(bytes);
    }
    assert_eq!(a.d2h(ptr, 1000, 0).unwrap(), expected);
    let back = Memcpy3D {
        src_ptr: ptr,
        src_pitch: 10,
        src_height: 6,
        src_x: 1,
        src_y: 1,
        src_z: 1,
        width: 5,
        height: 3,
        depth: 2,
        kind: kind::DEVICE_TO_HOST,
        ..Wire::ZERO
    };
    assert_eq!(a.call_inline(&back, &[]).unwrap().1, bytes);
    assert_eq!(a.call(&Memcpy3D { src_height: 2, ..back }), INVALID, "slices overlap");
    assert_eq!(a.call(&Memcpy3D { src_z: u64::MAX, ..back }), INVALID);
    assert_eq!(a.call(&Memcpy3D { src_z: 16, ..back }), INVALID);
}

#[test]
fn fills_repeat_their_element() {
    let (worker, _) = scripted(|_| {});
    let mut a = Peer::hello(worker.local_addr());
    let ptr = a.malloc(24);
    let fill = Memset { dst: ptr, value: 0x0102_0304, size: 8, stream: 0 };
    a.forget(&MemsetD8(fill), &[]);
    a.forget(&MemsetD16(Memset { dst: ptr + 8, size: 4, ..fill }), &[]);
    a.forget(&MemsetD32(Memset { dst: ptr + 16, size: 2, ..fill }), &[]);
    let expected = [[4; 8], [4, 3, 4, 3, 4, 3, 4, 3], [4, 3, 2, 1, 4, 3, 2, 1]].concat();
    assert_eq!(a.d2h(ptr, 24, 0).unwrap(), expected);
}

#[test]
fn copies_to_a_busy_stream_land_in_order() {
    let (worker, script) = scripted(|_| {});
    let (mut a, mut b) = (Peer::hello(worker.local_addr()), Peer::hello(worker.local_addr()));
    let big = 3 << 20;
    let (x, y) = (a.malloc(big), a.malloc(big));
    let stream = a.stream_create();
    let other = a.stream_create();
    script.hold(0, stream);
    // Fill x, overwrite a part, copy it all: the copy sees both.
    a.forget(&Memset { dst: x, value: 1, size: big, stream }, &[]);
    a.h2d(x, &[2; 1000], stream);
    a.forget(&d2d(y, x, big, stream), &[]);
    a.h2d(x, &[3; 1000], stream);
    // Few bytes do not hold the session up.
    a.call(&StreamSynchronize { stream: other }).unwrap();
    assert_eq!((script.calls("enqueue_write"), script.calls("write")), (2, 0));
    // Many do, but not another session.
    a.h2d(x, &pattern(big as usize, 4), stream);
    let after = a.send(&MemGetInfo {}, &[], ReplyMode::Always).unwrap();
    a.flush();
    b.malloc(64);
    assert_eq!((script.calls("mem_info"), script.calls("write")), (0, 0));
    script.release(0, stream);
    a.reply::<MemGetInfo>(after).unwrap();
    let mut expected = vec![1; big as usize];
    expected[..1000].fill(2);
    assert_eq!(a.d2h(y, big, stream).unwrap(), expected);
    assert_eq!(a.d2h(x, big, stream).unwrap(), pattern(big as usize, 4));
}

/// A synchronous copy to the device comes before all later work, of whatever stream, also where it waits for work itself
/// (HIP API: hipMemcpy). Few bytes and many.
#[test]
fn a_synchronous_copy_comes_before_later_work_of_other_streams() {
    let (worker, script) = scripted(|_| {});
    let mut a = Peer::hello(worker.local_addr());
    let (x, y) = (a.malloc(4 << 20), a.malloc(4 << 20));
    let free = a.call(&StreamCreateWithFlags(StreamCreate { flags: 1, priority: 0 })).unwrap().stream;
    let blocking = a.stream_create();
    for (number, (stream, size)) in [0, blocking, free]
        .into_iter()
        .flat_map(|stream| [1, 1000, 64 << 10, 4 << 20].map(|size| (stream, size)))
        .enumerate()
    {
        for rows in [false, true] {
            let bytes = pattern(size as usize, number as u64 + 1);
            a.call(&Memset { dst: x, value: 0, size, stream: free }).unwrap();
            a.call(&DeviceSynchronize {}).unwrap();
            let (reads, asked) = (script.calls("read"), script.calls("poll_ready"));
            script.hold(0, stream);
            a.forget(&Memset { dst: x, value: 0, size, stream }, &[]);
            if rows {
                let (dpitch, width, height) = (size, size, 1);
                let (kind, reserved) = (kind::HOST_TO_DEVICE, 0);
                let rows =
                    Memcpy2D { dst: x, dpitch, src: 0, spitch: size, width, height, kind, stream, reserved };
                a.forget(&rows, &bytes);
            } else {
                a.h2d(x, &bytes, stream);
            }
            if size <= 64 << 10 {
                a.call(&MemGetInfo {}).expect("few bytes do not hold the session up");
            }
            let later = if stream == free { blocking } else { free };
            a.forget(&d2d(y, x, size, later), &[]);
            let read = a.send(&d2h(y, size, later), &[], ReplyMode::Always).unwrap();
            a.flush();
            until("the copy waits", || script.calls("poll_ready") > asked);
            std::thread::sleep(std::time::Duration::from_millis(5));
            assert_eq!(script.calls("read"), reads, "{size} bytes on {stream}: what is later waits");
            script.release(0, stream);
            assert_eq!(a.reply::<Memcpy>(read).unwrap().1, bytes, "{size} bytes on {stream}");
        }
    }
}

/// A synchronous copy between two devices comes before all later work, of whatever stream (HIP API: hipMemcpy, hipMemcpyPeer); an asynchronous
/// one, and one within a device, only before that of its stream. Every operation that copies so, in both directions.
#[test]
fn a_synchronous_copy_between_devices_comes_before_later_work_of_other_streams() {
    let (worker, script) = scripted(|_| {});
    script.set_devices(2);
    let mut a = Peer::hello(worker.local_addr());
    let free = a.call(&StreamCreateWithFlags(StreamCreate { flags: 1, priority: 0 })).unwrap().stream;
    let [x, y] = [0, 1].map(|device| {
        a.call(&SetDevice { device_id: device }).unwrap();
        [a.malloc(64), a.malloc(64)]
    });
    a.call(&SetDevice { device_id: 0 }).unwrap();
    let size = 64;
    type Copy<'a> = (&'static str, Box<dyn Fn(&mut Peer, u64, u64) + 'a>);
    let rows = |dst, src| Memcpy2D {
        dst,
        dpitch: 8,
        src,
        spitch: 8,
        width: 8,
        height: 8,
        kind: kind::DEFAULT,
        stream: 0,
        reserved: 0,
    };
    let slices = |dst_ptr, src_ptr| Memcpy3D {
        src_ptr,
        src_pitch: 8,
        src_height: 4,
        dst_ptr,
        dst_pitch: 8,
        dst_height: 4,
        width: 8,
        height: 4,
        depth: 2,
        kind: kind::DEVICE_TO_DEVICE,
        ..Memcpy3D::ZERO
    };
    let peer = |dst, src| {
        let device = |at| i32::from(y.contains(&at));
        MemcpyPeer { dst, dst_device: device(dst), src, src_device: device(src), size, stream: 0 }
    };
    macro_rules! copies {
        ($($request:expr),* $(,)?) => {
            [$((stringify!($request), Box::new(move |a: &mut Peer, dst, src| a.forget(&$request(dst, src), &[])) as Box<_>)),*]
        };
    }
    let flat = |dst, src| d2d(dst, src, size, 0);
    let synchronous: [Copy<'_>; 5] = copies![flat, rows, slices, peer, |dst, src| MemcpyDtod(flat(dst, src))];
    let asynchronous: [Copy<'_>; 5] = copies![
        |dst, src| MemcpyAsync(flat(dst, src)),
        |dst, src| Memcpy2DAsync(rows(dst, src)),
        |dst, src| Memcpy3DAsync(slices(dst, src)),
        |dst, src| MemcpyPeerAsync(peer(dst, src)),
        |dst, src| MemcpyDtodAsync(flat(dst, src)),
    ];
    let all =
        synchronous.iter().map(|copy| (copy, true)).chain(asynchronous.iter().map(|copy| (copy, false)));
    for (number, ((name, copy), is_synchronous)) in all.enumerate() {
        for (dst, src) in [(x[0], y[0]), (y[0], x[0]), (x[0], x[1]), (y[0], y[1])] {
            let bytes = pattern(64, number as u64 + 1);
            a.h2d(src, &bytes, 0);
            a.call(&Memset { dst, value: 0, size, stream: free }).unwrap();
            a.call(&DeviceSynchronize {}).unwrap();
            let (reads, asked) = (script.calls("read"), script.calls("poll_ready"));
            script.hold(0, 0);
            a.forget(&Memset { dst, value: 0, size, stream: 0 }, &[]);
            copy(&mut a, dst, src);
            a.call(&MemGetInfo {}).expect("the session is not held up");
            let read = a.send(&d2h(dst, size, free), &[], ReplyMode::Always).unwrap();
            a.flush();
            let comes_behind = is_synchronous && x.contains(&dst) != x.contains(&src);
            if comes_behind {
                until("the copy waits", || script.calls("poll_ready") > asked);
                std::thread::sleep(std::time::Duration::from_millis(5));
                assert_eq!(script.calls("read"), reads, "{name}: what is later waits");
                script.release(0, 0);
            }
            let found = a.reply::<Memcpy>(read).unwrap().1;
            assert_eq!(found, if comes_behind { bytes } else { vec![0; 64] }, "{name}");
            script.release(0, 0);
        }
    }
}

#[test]
fn bytes_held_for_busy_streams_have_a_limit() {
    let (worker, script) = scripted(|config| config.session.staged_max_bytes = 1 << 20);
    let mut a = Peer::hello(worker.local_addr());
    let ptr = a.malloc(4 << 20);
    script.hold(0, 0);
    a.forget(&Memset { dst: ptr, value: 0, size: 1, stream: 0 }, &[]);
    let bytes = pattern(4 << 20, 9);
    for (i, piece) in bytes.chunks(32 << 10).enumerate() {
        a.h2d(ptr + (i as u64 * (32 << 10)), piece, 0);
    }
    a.flush();
    until("the limit is reached", || script.calls("enqueue_write") == 32);
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!((script.calls("enqueue_write"), script.calls("write")), (32, 0));
    script.release(0, 0);
    assert_eq!(a.d2h(ptr, 4 << 20, 0).unwrap(), bytes);
}

#[test]
fn a_reply_that_nobody_takes_is_not_produced() {
    let (worker, script) = scripted(|_| {});
    let (mut a, mut b) = (Peer::hello(worker.local_addr()), Peer::hello(worker.local_addr()));
    let len = 256 << 20;
    let ptr = a.malloc(len);
    a.h2d(ptr, &[5; 100], 0);
    let read = a.send(&d2h(ptr, len, 0), &[], ReplyMode::Always).unwrap();
    a.flush();
    until("reading begins", || script.calls("read") > 0);
    // The window and what the system's buffers take: far from all the pieces that there are.
    let all = len / SessionLimits::default().chunk_bytes as u64;
    let mut pieces = 0;
    until("reading stands still", || {
        let before = std::mem::replace(&mut pieces, script.calls("read"));
        std::thread::sleep(std::time::Duration::from_millis(20));
        before == pieces
    });
    assert!(pieces < all / 4, "{pieces} pieces of {all} were read for a peer that takes none");
    b.malloc(64);
    let (_, bytes) = a.reply::<Memcpy>(read).unwrap();
    assert_eq!(script.calls("read"), all);
    assert_eq!((bytes.len() as u64, &bytes[..100]), (len, &[5; 100][..]));
}

#[test]
fn more_open_requests_than_may_be_are_left_in_the_socket() {
    let (worker, script) = scripted(|config| {
        config.limits.protocol.open_max = 8;
        config.limits.in_flight_max_bytes = 1024;
    });
    let mut a = Peer::hello(worker.local_addr());
    let ptr = a.malloc(1000);
    script.hold(0, 0);
    a.forget(&Memset { dst: ptr, value: 1, size: 1, stream: 0 }, &[]);
    let wait = a.send(&DeviceSynchronize {}, &[], ReplyMode::Always).unwrap();
    for i in 0..1000 {
        a.h2d(ptr + i, &[i as u8], 0);
    }
    let last = a.send(&d2h(ptr, 1000, 0), &[], ReplyMode::Always).unwrap();
    a.flush();
    until("the wait begins", || script.calls("poll_sync") > 0);
    // INIT, MALLOC and MEMSET are done; the wait and at most seven more were taken.
    assert!(worker.stats().io().requests <= 11, "{:?}", worker.stats().io());
    script.release(0, 0);
    a.reply::<DeviceSynchronize>(wait).unwrap();
    let expected: Vec<u8> = (0..1000).map(|i| i as u8).collect();
    assert_eq!(a.reply::<Memcpy>(last).unwrap().1, expected);
    assert_eq!(worker.stats().io().requests, 1005);
}

#[test]
fn all_connections_together_have_a_limit_and_none_starves() {
    let (worker, script) = scripted(|config| config.limits.in_flight_total_max_bytes = 64 << 10);
    let mut stuck: Vec<_> = (0..4).map(|_| Peer::hello(worker.local_addr())).collect();
    for (i, peer) in stuck.iter_mut().enumerate() {
        let ptr = peer.malloc(1 << 20);
        script.hold(i, 0);
        peer.forget(&Memset { dst: ptr, value: 0, size: 1, stream: 0 }, &[]);
        peer.h2d(ptr, &pattern(1 << 20, i as u64), 0);
        peer.flush();
    }
    let mut free = Peer::hello(worker.local_addr());
    let ptr = free.malloc(1 << 20);
    free.h2d(ptr, &pattern(1 << 20, 77), 0);
    assert_eq!(free.d2h(ptr, 1 << 20, 0).unwrap(), pattern(1 << 20, 77));
    for (i, peer) in stuck.iter_mut().enumerate() {
        script.release(i, 0);
        assert!(peer.call(&DeviceSynchronize {}).is_ok());
    }
}

#[test]
fn a_code_object_is_collected_up_to_a_limit() {
    let (worker, script) = scripted(|config| config.session.collect_max_bytes = 1 << 20);
    script.define_kernel("k", 24, &[(0, 8), (8, 4)]);
    let mut a = Peer::hello(worker.local_addr());
    let image = pattern(1 << 20, 1);
    a.call_with(&ModuleLoadData { data_size: 1 << 20 }, &image).unwrap();
    let long = pattern((1 << 20) + 1, 1);
    let refused = a.call_with(&ModuleLoadData { data_size: (1 << 20) + 1 }, &long);
    assert_eq!(refused.map(drop), Err(HipError::OUT_OF_MEMORY));
    let empty = a.call_with(&ModuleLoadData { data_size: 0 }, &[]);
    assert_eq!(empty.map(drop), Err(HipError::INVALID_IMAGE));

    let both = |name: &str, image: &[u8]| {
        let request = ModuleLoadAndGetFunction {
            data_size: image.len() as u64,
            name_length: name.len() as u32,
            pad: 0,
        };
        (request, [name.as_bytes(), image].concat())
    };
    let (request, tail) = both("k", b"image");
    let reply = a.call_with(&request, &tail).unwrap();
    assert_eq!((reply.num_args, reply.num_params), (24, 2));
    assert_eq!(reply.params[..3], [(0, 8), (8, 4), (0, 0)].map(|(offset, size)| Param { offset, size }));
    a.call(&FuncGetAttributes { function: reply.function }).unwrap();
    let modules = script.live().modules;
    let (request, tail) = both("missing", b"image");
    assert_eq!(a.call_with(&request, &tail).map(drop), Err(HipError::NOT_FOUND));
    assert_eq!(script.live().modules, modules, "the module went with the function that is not there");
    let (request, tail) = both("", b"image");
    assert_eq!(a.call_with(&request, &tail).map(drop), INVALID);
}

/// A copy to the host is ordered in its stream: its bytes are read after the work that any command on the stream waits for.
/// Every pair of streams, by the rule of the null stream; the stream that is behind nothing reads at once.
#[test]
fn a_read_comes_behind_what_its_stream_comes_behind() {
    let (worker, script) = scripted(|_| {});
    let mut peer = Peer::hello(worker.local_addr());
    let ptr = peer.malloc(64);
    let blocking = peer.stream_create();
    let free = peer.call(&StreamCreateWithFlags(StreamCreate { flags: 1, priority: 0 })).unwrap().stream;
    let (null, legacy, own) = (0, 1, 2);
    let streams = [null, legacy, own, blocking, free];
    for (number, (writer, reader)) in streams.into_iter().flat_map(|a| streams.map(|b| (a, b))).enumerate() {
        let is_null = |stream| stream == null || stream == legacy;
        let ordered =
            writer == reader || ((is_null(writer) || is_null(reader)) && writer != free && reader != free);
        let (old, new) = (2 * number as i32, 2 * number as i32 + 1);
        peer.call(&Memset { dst: ptr, value: old, size: 64, stream: writer }).unwrap();
        peer.call(&DeviceSynchronize {}).unwrap();
        script.hold(0, writer);
        peer.call(&Memset { dst: ptr, value: new, size: 64, stream: writer }).unwrap();
        let asked = script.calls("poll_ready");
        let read = peer.send(&d2h(ptr, 64, reader), &[], ReplyMode::Always).unwrap();
        peer.flush();
        if ordered {
            until("the read waits", || script.calls("poll_ready") > asked);
            script.release(0, writer);
        }
        let value = if ordered { new } else { old };
        let bytes = peer.reply::<Memcpy>(read).unwrap().1;
        assert_eq!(bytes, [value as u8; 64], "work on {writer}, read on {reader}");
        script.release(0, writer);
    }
}
