//! Runs the kernels of the programs about streams, copies, errors and sessions.

use crate::check::{Random, blocks, equal};
use hipr_proto::HipError;
use hipr_proto::op;
use hipr_tests::{Buffer, Gpu, args};
use std::thread;

const NON_BLOCKING: u32 = 1;

fn stream(gpu: &mut Gpu, flags: u32) -> u64 {
    gpu.wire().call(&op::StreamCreate { flags, priority: 0 }).expect("a stream").stream
}

fn event(gpu: &mut Gpu) -> u64 {
    gpu.wire().call(&op::EventCreate { flags: 0 }).expect("an event").event
}

pub(crate) fn async_memory(gpu: &mut Gpu) {
    let stream = stream(gpu, 0);
    let total = gpu.zeroed::<u64>(1);
    gpu.synchronize().expect("zeroed");
    let mut want = 0;
    for round in 0..10u32 {
        let n = 1000 + 500 * round;
        let allocate = op::MallocAsync { size: u64::from(n) * 4, stream };
        let temporary = gpu.wire().call(&allocate).expect("memory in stream order").device_ptr;
        gpu.launch_on(stream, "iota", blocks(n as usize, 256), 256, 0, args![temporary, round, n]);
        gpu.launch_on(stream, "sum_into", 4, 64, 0, args![temporary, total, n]);
        gpu.wire().forget(&op::FreeAsync { device_ptr: temporary, stream });
        want += (round..round + n).map(u64::from).sum::<u64>();
    }
    equal("total", &gpu.download_on(stream, total), &[want]);
}

pub(crate) fn copies(gpu: &mut Gpu) {
    const N: usize = 1000;
    let mut random = Random(33);
    for len in [1, 3, 4096, 65_537, 3_000_001] {
        let values: Vec<u8> = random.bits(len);
        let (a, b) = (gpu.upload(&values), gpu.zeroed::<u8>(len));
        gpu.copy_on(0, b, a);
        equal("round trip", &gpu.download(b), &values);
    }
    let values: Vec<u8> = random.bits(N);
    // Parts, at offsets that are not aligned; nothing else changes.
    let (a, b) = (gpu.zeroed::<u8>(N), gpu.zeroed::<u8>(N));
    gpu.write(a.part(17, 401), &values[3..404]);
    gpu.copy_on(0, b.part(500, 333), a.part(20, 333));
    let mut part = vec![0u8; N];
    part[500..833].copy_from_slice(&values[6..339]);
    equal("parts", &gpu.download(b), &part);
    equal("a part of it", &gpu.download(b.part(501, 7)), &part[501..508]);

    // Copies and kernels in one stream without waiting.
    let stream = stream(gpu, 0);
    gpu.write_on(stream, a, &values);
    for _ in 0..20 {
        gpu.launch_on(stream, "increment", blocks(N, 256), 256, 0, args![a, N as u32]);
        gpu.copy_on(stream, b, a);
        gpu.copy_on(stream, a, b);
    }
    let want: Vec<u8> = values.iter().map(|v| v.wrapping_add(20)).collect();
    equal("in stream order", &gpu.download_on(stream, b), &want);
}

pub(crate) fn copies_2d(gpu: &mut Gpu) {
    const WIDTH: usize = 37;
    const HEIGHT: usize = 23;
    const PITCH: usize = 256;
    const ROW: u64 = WIDTH as u64 * 4;
    let values: Vec<i32> = Random(34).bits::<i32>(WIDTH * HEIGHT).iter().map(|v| v & 0xff_ffff).collect();
    let pitched = gpu.filled::<u8>(PITCH * HEIGHT, 0xee);
    let copy = |dst, dpitch, src, spitch, kind| op::Memcpy2D {
        dst,
        dpitch,
        src,
        spitch,
        width: ROW,
        height: HEIGHT as u64,
        kind,
        reserved: 0,
        stream: 0,
    };
    let up = copy(pitched.address(), PITCH as u64, 0, ROW, op::kind::HOST_TO_DEVICE);
    gpu.wire().forget_with(&up, &[], Some(bytemuck::cast_slice(&values).to_vec()));
    let args = args![pitched, PITCH as u64, WIDTH as i32, HEIGHT as i32];
    gpu.launch("add_columns", (2, 6), (32, 4), 0, args);
    let down = copy(0, ROW, pitched.address(), PITCH as u64, op::kind::DEVICE_TO_HOST);
    let replied = gpu.wire().call_with(&down, &[], None);
    assert_eq!(replied.result, Ok(()), "rows come back");
    let want: Vec<i32> = (0..).zip(&values).map(|(i, v)| v + i % WIDTH as i32).collect();
    equal("pitched", &bytemuck::pod_collect_to_vec::<u8, i32>(&replied.inline), &want);
    let untouched =
        gpu.download(pitched).chunks(PITCH).all(|row| row[4 * WIDTH..].iter().all(|b| *b == 0xee));
    assert!(untouched, "bytes between the rows stay");
}

pub(crate) fn errors(gpu: &mut Gpu) {
    let out = gpu.zeroed::<i32>(256);
    for (grid, block) in [
        ((0, 1, 1), (64, 1, 1)),
        ((1, 1, 1), (0, 1, 1)),
        ((1, 1, 1), (64, 1, 0)),
        ((1, 1, 1), (1025, 1, 1)),
        ((1, 1, 1), (64, 64, 1)),
    ] {
        let refused = gpu.try_launch("set_one", grid, block, 0, args![out]).expect_err("a wrong shape");
        assert_eq!(refused, HipError::INVALID_VALUE, "{grid:?} blocks of {block:?}");
    }
    let refused = gpu.try_launch("set_one", 1, 64, 65_537, args![out]);
    assert_eq!(refused, Err(HipError::INVALID_VALUE), "more LDS than there is");
    let refused = gpu.try_launch("at_most_64", 1, 128, 0, args![out]);
    assert_eq!(refused, Err(HipError::LAUNCH_FAILURE), "more threads than the kernel's bound");

    // None of them did anything, and none of them is in the way.
    equal("untouched", &gpu.download(out), &[0; 256]);
    gpu.launch("set_one", 2, 128, 0, args![out]);
    equal("a good launch", &gpu.download(out), &[1; 256]);
    let few = out.part(0, 64);
    gpu.launch("at_most_64", 1, 64, 0, args![few]);
    equal("within the bound", &gpu.download(few), &[2; 64]);
}

pub(crate) fn faults(gpu: &mut Gpu) {
    const WILD: u64 = 0x1234_5678_9000;
    let data = gpu.upload(&[3i32; 64]);
    fn fault(gpu: &mut Gpu, data: Buffer<i32>, value: i32) {
        assert_eq!(gpu.synchronize(), Err(HipError::ILLEGAL_ADDRESS));
        still_works(gpu, data, value);
    }
    fn still_works(gpu: &mut Gpu, data: Buffer<i32>, value: i32) {
        assert_eq!(gpu.synchronize(), Ok(()), "an error is reported once");
        gpu.launch("fill_with", 1, 64, 0, args![data, value]);
        equal("after a fault", &gpu.download(data), &[value; 64]);
    }
    gpu.launch("write_at", 1, 64, 0, args![WILD, 1i32]);
    fault(gpu, data, 10);
    gpu.launch("read_at", 1, 64, 0, args![WILD, data]);
    fault(gpu, data, 11);
    gpu.launch("write_at", 1, 64, 0, args![0u64, 1i32]);
    fault(gpu, data, 12);
    gpu.launch("write_one_lane", 1, 64, 0, args![data, data.address() + (1 << 36), 17i32]);
    fault(gpu, data, 13);
    {
        const LEN: usize = 8 << 20;
        let freed = gpu.zeroed::<u8>(LEN);
        gpu.wire().forget(&op::Free { device_ptr: freed.address() });
        gpu.launch("write_at", 1, 64, 0, args![freed.address() + (4 << 20), 1i32]);
        fault(gpu, data, 14);
    }
    // On a stream of its own: waiting for the stream reports it.
    let stream = stream(gpu, 0);
    gpu.launch_on(stream, "write_at", 1, 64, 0, args![WILD, 1i32]);
    let waited = gpu.wire().call(&op::StreamSynchronize { stream });
    assert_eq!(waited, Err(HipError::ILLEGAL_ADDRESS), "the stream's fault");
    still_works(gpu, data, 15);
    // A trap is another error; a kernel that does not meet its condition does not trap.
    gpu.launch("trap_if", 1, 64, 0, args![data, 99i32]);
    equal("no trap", &gpu.download(data), &[7; 64]);
    gpu.launch("trap_if", 1, 64, 0, args![data, 7i32]);
    assert!(gpu.synchronize().is_err(), "a trap is an error");
    still_works(gpu, data, 16);
}

pub(crate) fn host_memory(gpu: &mut Gpu) {
    const N: usize = 5000;
    let mut random = Random(35);
    let stream = stream(gpu, 0);
    let data = gpu.zeroed::<i32>(N);
    for _ in 0..3 {
        let values: Vec<i32> = (0..N).map(|_| (random.u32() >> 1) as i32).collect();
        gpu.write_on(stream, data, &values);
        gpu.launch_on(stream, "negate", blocks(N, 256), 256, 0, args![data, N as i32]);
        let want: Vec<i32> = values.iter().map(|v| -v).collect();
        equal("negated", &gpu.download_on(stream, data), &want);
    }
}

pub(crate) fn coherent(gpu: &mut Gpu) {
    let (flag, said, heard) = (gpu.upload::<u32>(&[1]), gpu.upload::<u32>(&[77]), gpu.zeroed::<u32>(1));
    gpu.launch("answer", 1, 1, 0, args![flag, said, heard, 1u32]);
    assert_eq!((gpu.download(flag), gpu.download(heard)), (vec![2], vec![77]));
    let (word, pair) = (gpu.zeroed::<u32>(1), gpu.zeroed::<u64>(1));
    gpu.launch("add", 4, 64, 0, args![word, pair, 50u32]);
    assert_eq!((gpu.download(word), gpu.download(pair)), (vec![4 * 64 * 50], vec![4 * 64 * 50]));
}

pub(crate) fn mirrored_writes(gpu: &mut Gpu) {
    let words = gpu.zeroed::<u32>(64);
    gpu.launch("write_words", 1, 64, 0, args![words, 7u32]);
    equal("words", &gpu.download(words), &[7; 64]);
    let sink = gpu.zeroed::<u32>(1);
    gpu.launch("delay_stream", 1, 1, 0, args![sink, 200i32]);
    equal("sink", &gpu.download(sink), &[200]);
}

pub(crate) fn mirrored_lifetimes(gpu: &mut Gpu) {
    let words = gpu.filled::<u32>(64, 1);
    (0..3).for_each(|_| gpu.launch("add_to_words", 1, 64, 0, args![words, 5u32]));
    equal("words", &gpu.download(words), &[0x0101_0101 + 15; 64]);
}

pub(crate) fn settled(gpu: &mut Gpu) {
    let sink = gpu.zeroed::<u32>(1);
    gpu.launch("keep_busy", 1, 1, 0, args![sink, 300i32]);
    equal("sink", &gpu.download(sink), &[300]);
}

pub(crate) fn many_launches(gpu: &mut Gpu) {
    let table: Vec<u32> = Random(36).bits(64);
    let (dtable, state, copy) = (gpu.upload(&table), gpu.filled::<u32>(64, 1), gpu.zeroed::<u32>(64));
    let mut want = [0x0101_0101u32; 64];
    for k in 0..300u32 {
        gpu.launch("step", 1, 64, 0, args![state, dtable, k]);
        if k % 50 == 49 {
            gpu.copy_on(0, copy, state);
            gpu.copy_on(0, state, copy);
        }
        for (i, v) in (0..).zip(&mut want) {
            let added = table[(i + k) as usize % 64].wrapping_add(k);
            *v = v.wrapping_mul(1_664_525).wrapping_add(added);
        }
    }
    equal("state", &gpu.download(state), &want);
}

const COUNT: usize = 512;

fn churned(v: u32, add: u32, times: i32) -> u32 {
    (0..times).fold(v, |v, _| v.wrapping_mul(3).wrapping_add(add))
}

fn churn(gpu: &mut Gpu, stream: u64, data: Buffer<u32>, values: &mut [u32], add: u32, times: i32) {
    gpu.launch_on(stream, "churn", blocks(COUNT, 128), 128, 0, args![data, add, times]);
    values.iter_mut().for_each(|v| *v = churned(*v, add, times));
}

pub(crate) fn streams(gpu: &mut Gpu) {
    let mut random = Random(31);
    // Independent work, waited for in another order.
    let mut work = Vec::new();
    for s in 0..4 {
        let stream = stream(gpu, 0);
        let mut values: Vec<u32> = random.bits(COUNT);
        let data = gpu.upload(&values);
        let (start, stop) = (event(gpu), event(gpu));
        gpu.wire().forget(&op::EventRecord { event: start, stream });
        (0..3).for_each(|k| churn(gpu, stream, data, &mut values, s + k, 50));
        gpu.wire().forget(&op::EventRecord { event: stop, stream });
        work.push((stream, data, values, start, stop));
    }
    for (stream, data, values, start_event, stop_event) in work.into_iter().rev() {
        equal("stream", &gpu.download_on(stream, data), &values);
        let elapsed = gpu.wire().call(&op::EventElapsedTime { start_event, stop_event });
        let elapsed_ms = elapsed.expect("both are complete").milliseconds;
        assert!(elapsed_ms >= 0.0, "{elapsed_ms} ms");
        assert_eq!(gpu.wire().call(&op::EventQuery { event: stop_event }), Ok(()));
        assert_eq!(gpu.wire().call(&op::StreamQuery { stream }), Ok(()));
    }
    ordered_by_events(gpu);

    // Work on the null stream comes after earlier work on blocking streams, and before later work on them.
    let stream = stream(gpu, 0);
    let mut values = vec![5u32; COUNT];
    let data = gpu.upload(&values);
    churn(gpu, stream, data, &mut values, 1, 300);
    churn(gpu, 0, data, &mut values, 2, 3);
    churn(gpu, stream, data, &mut values, 3, 30);
    equal("null stream", &gpu.download(data), &values);
    // A stream may be destroyed while it has work: the work is done nevertheless.
    churn(gpu, stream, data, &mut values, 5, 500);
    gpu.wire().forget(&op::StreamDestroy { stream });
    assert_eq!(gpu.synchronize(), Ok(()));
    equal("destroyed with work", &gpu.download(data), &values);
}

/// Checks what the null stream, one stream and an event order: the first work stands behind a kernel that takes a while, and
/// what comes behind it sees what it wrote.
pub(crate) fn stream_order(gpu: &mut Gpu) {
    const N: usize = 256;
    let (blocking, free) = (stream(gpu, 0), stream(gpu, NON_BLOCKING));
    let (null, per_thread) = (0, 2);
    let event = event(gpu);
    let streams = [null, per_thread, blocking, free];
    let (cells, sink) = (gpu.zeroed::<u8>(N), gpu.zeroed::<u8>(N));
    gpu.synchronize().expect("zeroed");
    let mut value = 0u8;
    for (first, second) in streams.into_iter().flat_map(|first| streams.map(|second| (first, second))) {
        let by_null = (first == null || second == null) && first != free && second != free;
        for has_event in [false, true] {
            if !(has_event || first == second || by_null) {
                continue;
            }
            for reads_at_once in [false, true] {
                value += 1;
                gpu.launch_on(first, "spin", 1, 64, 0, args![]);
                gpu.launch_on(first, "set_bytes", 1, N as u32, 0, args![cells, value, N as u32]);
                if has_event {
                    gpu.wire().forget(&op::EventRecord { event, stream: first });
                    gpu.wire().forget(&op::StreamWaitEvent { stream: second, event, flags: 0 });
                }
                let read = if reads_at_once {
                    gpu.download_on(second, cells)
                } else {
                    gpu.launch_on(second, "copy_bytes", 1, N as u32, 0, args![sink, cells, N as u32]);
                    gpu.download_on(second, sink)
                };
                equal(&format!("{first}, {second}, event: {has_event}"), &read, &[value; N]);
                gpu.synchronize().expect("no error");
            }
        }
    }
}

/// Runs two producers and a consumer that waits for both, repeatedly, so that a producer also waits for the consumer.
fn ordered_by_events(gpu: &mut Gpu) {
    let [left, right, join] = [(); 3].map(|()| stream(gpu, NON_BLOCKING));
    let [left_ready, right_ready, joined] = [(); 3].map(|()| event(gpu));
    let (mut a, mut b) = (vec![1u32; COUNT], vec![2u32; COUNT]);
    let (da, db, dsum) = (gpu.upload(&a), gpu.upload(&b), gpu.zeroed::<u32>(COUNT));
    gpu.synchronize().expect("uploaded");
    let wait =
        |gpu: &mut Gpu, stream, event| gpu.wire().forget(&op::StreamWaitEvent { stream, event, flags: 0 });
    let record = |gpu: &mut Gpu, event, stream| gpu.wire().forget(&op::EventRecord { event, stream });
    for round in 0..4 {
        if round > 0 {
            wait(gpu, left, joined);
            wait(gpu, right, joined);
        }
        churn(gpu, left, da, &mut a, round, 200);
        record(gpu, left_ready, left);
        churn(gpu, right, db, &mut b, round + 7, 10);
        record(gpu, right_ready, right);
        wait(gpu, join, left_ready);
        wait(gpu, join, right_ready);
        gpu.launch_on(join, "add_arrays", blocks(COUNT, 128), 128, 0, args![da, db, dsum]);
        gpu.copy_on(join, da, dsum);
        record(gpu, joined, join);
        a.iter_mut().zip(&b).for_each(|(a, b)| *a = a.wrapping_add(*b));
    }
    gpu.wire().call(&op::EventSynchronize { event: joined }).expect("everything ran");
    equal("joined", &gpu.download(dsum), &a);
}

/// Runs sessions of several host threads at once, each with its own stream.
pub(crate) fn threads(gpu: &mut Gpu) {
    fn work(gpu: &mut Gpu, seed: u64) {
        const N: usize = 1000;
        let mut random = Random(100 + seed);
        let mut small = || (0..N).map(|_| random.below(1000)).collect::<Vec<u32>>();
        let (x, mut y) = (small(), small());
        let stream = stream(gpu, NON_BLOCKING);
        let (dx, dy) = (gpu.upload(&x), gpu.upload(&y));
        gpu.synchronize().expect("uploaded");
        for round in 0..20 {
            let a = seed as u32 * 31 + round;
            gpu.launch_on(stream, "axpy_mod", blocks(N, 128), 128, 0, args![dy, dx, a, N as u32]);
            y.iter_mut().zip(&x).for_each(|(y, x)| *y = (*y + a * x) % 1_000_003);
            if round % 5 == 4 {
                equal("one of several sessions", &gpu.download_on(stream, dy), &y);
            }
        }
    }
    let others: Vec<Gpu> = (0..3).map(|_| gpu.another()).collect();
    thread::scope(|scope| {
        for (seed, mut other) in (1..).zip(others) {
            scope.spawn(move || work(&mut other, seed));
        }
        work(gpu, 0);
    });
}
