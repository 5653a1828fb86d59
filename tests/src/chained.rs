//! What a worker with the device `hip` does for its clients: kernels, copies, events, waiting, what is refused and what is released.

use crate::faults::Rig;
use crate::{Buffer, Gpu, WireClient, args, eventually};
use hipr_proto::{Header, HipError, Info, OPS, Opcode, ReplyMode, TailLen, op};
use std::collections::BTreeSet;
use std::io::{Read, Write};

/// The demo's kernels.
static KERNELS: &[u8] = include_bytes!("../../cli/demo/kernels.co");
/// Has `spin`, which ends when another than 0 is written.
static ENDLESS: &[u8] = include_bytes!("../../cli/tests/bounds/kernels.co");

/// The operations that the device does not support, and why. It supports all others.
const NOT_CARRIED_OUT: &[(&str, &[&str])] = &[
    ("It is not of the HIP API: a management library knows it.", &["SMI_GET_GPU_METRICS"]),
    (
        "A real GPU chooses addresses itself.",
        &["MALLOC_AT", "MALLOC_SHARED", "MEM_LEASE", "MEM_RETURN", "MEM_SHARE"],
    ),
    ("A real GPU does not say when its free memory changes.", &["MEM_INFO"]),
    (
        "A worker copies to other ones if the program that links it says how, as `hipr worker` does.",
        &["CAPABILITY_COPY", "CAPABILITY_GIVE", "CAPABILITY_READ"],
    ),
    (
        "Only the worker sends it.",
        &[
            "MEM_INFO_CHANGED",
            "MEM_RECALL",
            "PRINTED",
            "REQUEST_FAILED",
            "TIMES_TOLD",
            "TRACED",
            "VARIABLES_TOLD",
            "WATCH_OVER",
            "WORK_FAILED",
        ],
    ),
];

fn pattern(len: usize, seed: u32) -> Vec<u32> {
    (0..len as u32).map(|i| i.wrapping_mul(2_654_435_761).wrapping_add(seed)).collect()
}

/// Checks that kernels run in order and that their results come back.
pub fn kernels_run_and_their_results_come_back(rig: &Rig<'_>) {
    let (chain, _folder) = rig.start(&[]);
    let mut gpu = Gpu::open(chain.address(), KERNELS);
    let x: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let (dx, dy) = (gpu.upload(&x), gpu.upload(&vec![1.0f32; 1000]));
    for _ in 0..3 {
        gpu.launch("saxpy", 4, 256, 0, args![2.0f32, dx, dy, 1000u32]);
    }
    let want: Vec<f32> = x.iter().map(|x| 6.0 * x + 1.0).collect();
    assert_eq!(gpu.download(dy), want);
    assert_eq!(gpu.synchronize(), Ok(()));
}

/// Checks copies of more bytes than all pinned buffers hold, not a multiple of their size.
pub fn long_copies_go_both_ways(rig: &Rig<'_>) {
    let (chain, _folder) = rig.start(&[]);
    let mut gpu = Gpu::open(chain.address(), KERNELS);
    let stream = gpu.wire().call(&op::StreamCreate { flags: 1, priority: 0 }).expect("a stream").stream;
    for (len, stream) in
        [(1, 0), (65_536, 0), (131_072, stream), (131_073, 0), (5_000_011, stream), (5_000_011, 0)]
    {
        let values = pattern(len, 7);
        let (a, b): (Buffer<u32>, Buffer<u32>) = (gpu.zeroed(len), gpu.zeroed(len));
        gpu.synchronize().expect("zeroed");
        gpu.write_on(stream, a, &values);
        gpu.copy_on(stream, b, a);
        assert!(gpu.download_on(stream, b) == values, "{len} values on stream {stream:#x}");
    }
}

/// Checks that short copies without a wait between them arrive, each in its place.
pub fn many_short_copies_share_what_there_is(rig: &Rig<'_>) {
    let (chain, _folder) = rig.start(&[]);
    let mut gpu = Gpu::open(chain.address(), KERNELS);
    let values = pattern(3000, 3);
    let all = gpu.zeroed::<u32>(values.len());
    for (i, value) in values.iter().enumerate() {
        gpu.write(all.part(i, 1), std::slice::from_ref(value));
    }
    assert_eq!(gpu.download(all), values);
}

/// Checks that a copy of rows and slices leaves the bytes between them as they are.
pub fn rows_and_slices_keep_their_gaps(rig: &Rig<'_>) {
    let (chain, _folder) = rig.start(&[]);
    let mut gpu = Gpu::open(chain.address(), KERNELS);
    let all = gpu.filled::<u8>(100_000, 0xee);
    let slices = op::Memcpy3D {
        src_ptr: 0,
        src_pitch: 0,
        src_height: 0,
        src_x: 0,
        src_y: 0,
        src_z: 0,
        dst_ptr: all.address(),
        dst_pitch: 100,
        dst_height: 50,
        dst_x: 10,
        dst_y: 5,
        dst_z: 1,
        width: 70,
        height: 40,
        depth: 18,
        kind: op::kind::HOST_TO_DEVICE,
        reserved: 0,
        stream: 0,
    };
    let bytes: Vec<u8> = (0..70 * 40 * 18u32).map(|i| (i % 251) as u8).collect();
    let sent = gpu.wire().call_with(&slices, &[], Some(bytes.clone()));
    assert_eq!(sent.result, Ok(()));
    let mut want = vec![0xee; 100_000];
    for (row, bytes) in bytes.chunks(70).enumerate() {
        let (z, y) = (row / 40, row % 40);
        want[((z + 1) * 50 + y + 5) * 100 + 10..][..70].copy_from_slice(bytes);
    }
    assert!(gpu.download(all) == want);
    let back = op::Memcpy3D {
        src_ptr: slices.dst_ptr,
        src_pitch: 100,
        src_height: 50,
        src_x: 10,
        src_y: 5,
        src_z: 1,
        kind: op::kind::DEVICE_TO_HOST,
        ..slices
    };
    let read = gpu.wire().call_with(&back, &[], None);
    assert_eq!(read.result, Ok(()));
    assert!(read.inline == bytes);
    // From one box to another on the device.
    let other = gpu.filled::<u8>(100_000, 0);
    let across = op::Memcpy3D {
        dst_ptr: other.address(),
        dst_x: 0,
        dst_y: 0,
        dst_z: 0,
        kind: op::kind::DEVICE_TO_DEVICE,
        ..back
    };
    gpu.wire().forget(&across);
    let moved = gpu.download(other);
    for (row, bytes) in bytes.chunks(70).enumerate() {
        let (z, y) = (row / 40, row % 40);
        assert_eq!(&moved[(z * 50 + y) * 100..][..70], bytes, "row {row}");
    }
}

/// Checks that an event orders two streams, and that two events measure the work between them.
pub fn events_order_streams_and_measure_them(rig: &Rig<'_>) {
    let (chain, _folder) = rig.start(&[]);
    let mut gpu = Gpu::open(chain.address(), KERNELS);
    let mut stream =
        || gpu.wire().call(&op::StreamCreate { flags: 1, priority: 0 }).expect("a stream").stream;
    let (a, b) = (stream(), stream());
    let mut event = || gpu.wire().call(&op::EventCreate { flags: 0 }).expect("an event").event;
    let (start, stop) = (event(), event());
    let (x, y) = (gpu.upload(&vec![1.0f32; 4096]), gpu.upload(&vec![0.0f32; 4096]));
    gpu.synchronize().expect("uploaded");
    gpu.wire().forget(&op::EventRecord { event: start, stream: a });
    for _ in 0..10 {
        gpu.launch_on(a, "saxpy", 16, 256, 0, args![1.0f32, x, y, 4096u32]);
    }
    gpu.wire().forget(&op::EventRecord { event: stop, stream: a });
    gpu.wire().forget(&op::StreamWaitEvent { stream: b, event: stop, flags: 0 });
    gpu.launch_on(b, "saxpy", 16, 256, 0, args![1.0f32, x, y, 4096u32]);
    assert_eq!(gpu.download_on(b, y), [11.0; 4096]);
    assert_eq!(gpu.wire().call(&op::EventSynchronize { event: stop }), Ok(()));
    assert_eq!(gpu.wire().call(&op::EventQuery { event: stop }), Ok(()));
    let elapsed = gpu.wire().call(&op::EventElapsedTime { start_event: start, stop_event: stop });
    assert!(elapsed.expect("both happened").milliseconds > 0.0);
    gpu.wire().forget(&op::StreamDestroy { stream: a });
    gpu.wire().forget(&op::StreamDestroy { stream: b });
    gpu.wire().forget(&op::EventDestroy { event: start });
    assert_eq!(gpu.wire().call(&op::EventQuery { event: start }), Err(HipError::INVALID_HANDLE));
    assert_eq!(gpu.synchronize(), Ok(()));
}

/// Checks that a wait does not block the worker's one dispatch thread: while a session's kernel runs, it serves other
/// sessions, and the same session on other streams.
pub fn a_kernel_that_goes_on_holds_up_nobody_else(rig: &Rig<'_>) {
    let (chain, _folder) = rig.start(&[]);
    let mut gpu = Gpu::open(chain.address(), ENDLESS);
    let mut stream =
        || gpu.wire().call(&op::StreamCreate { flags: 1, priority: 0 }).expect("a stream").stream;
    let (spinning, free) = (stream(), stream());
    let stop = gpu.upload(&[0u32]);
    gpu.synchronize().expect("uploaded");
    gpu.launch_on(spinning, "spin", 40, 64, 0, args![stop]);
    let query = op::StreamQuery { stream: spinning };
    assert_eq!(gpu.wire().call(&query), Err(HipError::NOT_READY));

    let mut other = Gpu::open(chain.address(), KERNELS);
    let ones = other.upload(&[1.0f32; 1000]);
    other.launch("saxpy", 4, 256, 0, args![2.0f32, ones, ones, 1000u32]);
    assert_eq!(other.download(ones), [3.0; 1000]);
    assert_eq!(other.synchronize(), Ok(()));
    assert_eq!(gpu.wire().call(&query), Err(HipError::NOT_READY), "all that time");

    let mut second = gpu.another();
    let wait = op::StreamSynchronize {
        stream: second.wire().call(&op::StreamCreate { flags: 1, priority: 0 }).expect("a stream").stream,
    };
    assert_eq!(second.wire().call(&wait), Ok(()), "of its own stream");

    gpu.write_on(free, stop, &[1]);
    assert_eq!(gpu.wire().call(&op::StreamSynchronize { stream: spinning }), Ok(()));
}

/// Checks that the worker's thread does not wait for work of a client that is gone.
pub fn a_client_that_goes_in_the_middle_of_a_kernel_is_no_burden(rig: &Rig<'_>) {
    let (mut chain, _folder) = rig.start(&[]);
    let mut gpu = Gpu::open(chain.address(), ENDLESS);
    let stream = gpu.wire().call(&op::StreamCreate { flags: 1, priority: 0 }).expect("a stream").stream;
    let stop = gpu.upload(&[0u32]);
    gpu.synchronize().expect("uploaded");
    gpu.launch_on(stream, "spin", 1, 64, 0, args![stop]);
    assert_eq!(gpu.wire().call(&op::StreamQuery { stream }), Err(HipError::NOT_READY));
    // It waits for what will not happen, and goes.
    gpu.wire().send(&op::DeviceSynchronize {}, &[], None, ReplyMode::Always);
    drop(gpu);
    let mut other = Gpu::open(chain.address(), KERNELS);
    for _ in 0..20 {
        let ones = other.upload(&[1.0f32; 1000]);
        other.launch("saxpy", 4, 256, 0, args![2.0f32, ones, ones, 1000u32]);
        assert_eq!(other.download(ones), [3.0; 1000]);
    }
    assert_eq!(other.synchronize(), Ok(()));
    assert!(chain.lives());
}

/// Checks that a fault is reported once, to the session whose kernel caused it, when that session synchronizes.
pub fn a_fault_is_told_to_whose_it_is(rig: &Rig<'_>) {
    let (chain, _folder) = rig.start(&[]);
    let mut gpu = Gpu::open(chain.address(), KERNELS);
    let mut other = gpu.another();
    let y = gpu.upload(&vec![0.0f32; 64]);
    gpu.launch("saxpy", 1, 64, 0, args![2.0f32, 0x10u64, y, 64u32]);
    assert_eq!(other.synchronize(), Ok(()));
    assert_eq!(gpu.synchronize(), Err(HipError::ILLEGAL_ADDRESS));
    assert_eq!(gpu.synchronize(), Ok(()), "once");
    let ones = other.upload(&[1.0f32; 64]);
    assert_eq!(other.download(ones), [1.0; 64]);
}

/// Checks the errors of a broken code object, of too much memory, of a device that is not there and of a block that is too large.
pub fn what_does_not_exist_is_refused(rig: &Rig<'_>) {
    let (chain, _folder) = rig.start(&[]);
    let mut gpu = Gpu::open(chain.address(), KERNELS);
    let broken = op::ModuleLoadData { data_size: 100 };
    let loaded = gpu.wire().call_with(&broken, &[], Some(KERNELS[..100].to_vec()));
    assert_eq!(loaded.result.map(drop), Err(HipError::INVALID_IMAGE));
    let huge = gpu.wire().call(&op::Malloc { size: 1 << 50, flags: 0 });
    assert_eq!(huge.map(drop), Err(HipError::OUT_OF_MEMORY));
    assert_eq!(gpu.wire().call(&op::SetDevice { device_id: 9 }), Err(HipError::INVALID_DEVICE));
    let too_many = gpu.filled::<f32>(16, 0);
    let refused = gpu.try_launch("saxpy", 1, 2048, 0, args![1.0f32, too_many, too_many, 16u32]);
    assert_eq!(refused, Err(HipError::INVALID_VALUE));
}

/// Checks that what a session leaves behind is released on the GPU.
pub fn a_session_that_ends_leaves_nothing(rig: &Rig<'_>) {
    let (chain, _folder) = rig.start(&[]);
    // AMD's runtime has the GPU itself.
    let mut back = WireClient::open(if rig.is_emulated { chain.back() } else { chain.address() });
    let free = |wire: &mut WireClient| wire.call(&op::MemGetInfo {}).expect("memory").free_bytes;
    let mut first = Gpu::open(chain.address(), KERNELS);
    first.zeroed::<u8>(1 << 20);
    first.synchronize().expect("allocated");
    let before = free(&mut back);
    for _ in 0..3 {
        let mut gpu = Gpu::open(chain.address(), KERNELS);
        let x = gpu.filled::<f32>(1 << 20, 0);
        gpu.launch("saxpy", 16, 256, 0, args![1.0f32, x, x, 1u32 << 20]);
        gpu.wire().call(&op::StreamCreate { flags: 0, priority: 0 }).expect("a stream");
        gpu.wire().send(&op::DeviceSynchronize {}, &[], None, ReplyMode::Never);
        drop(gpu);
    }
    eventually("all memory is free again", || {
        first.synchronize().expect("the session goes on");
        free(&mut back) == before
    });
}

/// Sends a request of zeros and returns the error code of the reply.
fn answer_to_zeros(wire: &mut WireClient, info: &Info) -> i32 {
    let mut payload = vec![0; info.request.size];
    let tail = match info.tail_len(&payload).expect("a whole request") {
        TailLen::Exact(len) | TailLen::AtLeast(len) => usize::try_from(len).expect("a short tail"),
        TailLen::AtMost(_) => 0,
    };
    payload.resize(payload.len() + tail, 0);
    let mut message = Header::new(info.code, 1, payload.len() as u64, 0).to_bytes().to_vec();
    message.extend_from_slice(&payload);
    wire.stream().write_all(&message).expect("the worker reads");
    let mut header = [0; Header::SIZE];
    wire.stream().read_exact(&mut header).expect("an answer");
    let header = Header::take(&mut &header[..]).expect("a header");
    let mut payload = vec![0; usize::try_from(header.payload_length).expect("a short answer")];
    wire.stream().read_exact(&mut payload).expect("a whole answer");
    let code = payload.first_chunk().copied().expect("every answer begins with its code");
    i32::from_le_bytes(code)
}

/// Checks that all operations but those of `NOT_CARRIED_OUT` are carried out; of those, the ones about other workers are if this one copies to them.
pub fn every_operation_is_carried_out_or_it_is_said_why_not(rig: &Rig<'_>, copies_to_workers: bool) {
    let (chain, _folder) = rig.start(&[]);
    let mut refused = BTreeSet::new();
    for info in OPS.iter().filter(|info| info.code != Opcode::INIT) {
        let mut wire = WireClient::open(chain.address());
        wire.call(&op::Offer { features: u64::MAX, part: 0 }).expect("the worker has the extension");
        if answer_to_zeros(&mut wire, info) == HipError::NOT_SUPPORTED.0 {
            refused.insert(info.name);
        }
    }
    let mut said: BTreeSet<&str> = NOT_CARRIED_OUT.iter().flat_map(|(_, names)| *names).copied().collect();
    said.retain(|name| !copies_to_workers || !name.starts_with("CAPABILITY_"));
    assert_eq!(refused, said);
}

/// Checks that the worker does not ask the HIP runtime about events whose stream is destroyed. AMD's runtime would read the memory of that
/// stream; `tests/faulty-hip`, which has to be the runtime, fails such calls.
pub fn an_event_whose_stream_is_destroyed_has_happened(rig: &Rig<'_>) {
    let (chain, _folder) = rig.start(&[]);
    let mut gpu = Gpu::open(chain.address(), KERNELS);
    let (x, y) = (gpu.upload(&[1.0f32; 4096]), gpu.upload(&[0.0f32; 4096]));
    gpu.synchronize().expect("uploaded");
    let event = gpu.wire().call(&op::EventCreate { flags: 0 }).expect("an event").event;
    for round in 1..=5 {
        let mut stream =
            || gpu.wire().call(&op::StreamCreate { flags: 1, priority: 0 }).expect("a stream").stream;
        let (a, b) = (stream(), stream());
        gpu.launch_on(a, "saxpy", 16, 256, 0, args![1.0f32, x, y, 4096u32]);
        gpu.wire().forget(&op::EventRecord { event, stream: a });
        // What is freed waits for the work of all streams.
        let freed = gpu.wire().call(&op::Malloc { size: 64, flags: 0 }).expect("memory").device_ptr;
        gpu.wire().forget(&op::StreamDestroy { stream: a });
        gpu.wire().forget(&op::Free { device_ptr: freed });
        assert_eq!(gpu.wire().call(&op::EventSynchronize { event }), Ok(()));
        assert_eq!(gpu.synchronize(), Ok(()));
        assert_eq!(gpu.wire().call(&op::EventQuery { event }), Ok(()), "{round}");
        gpu.wire().forget(&op::StreamWaitEvent { stream: b, event, flags: 0 });
        assert_eq!(gpu.download_on(b, y), [round as f32; 4096]);
        gpu.wire().forget(&op::StreamDestroy { stream: b });
        // Recorded anew, it is of its new stream.
        gpu.wire().forget(&op::EventRecord { event, stream: 0 });
        assert_eq!(gpu.wire().call(&op::EventSynchronize { event }), Ok(()));
    }
}
