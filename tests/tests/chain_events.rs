//! Checks that the worker does not ask the HIP runtime about events whose stream is destroyed. AMD's runtime would read the memory of that
//! stream; `tests/faulty-hip` fails such calls.

use hipr_proto::op;
use hipr_tests::faults::LIBRARY;
use hipr_tests::{Chain, Gpu, args, built_library, library};
use std::process::Command;

/// The demo's kernels.
static KERNELS: &[u8] = include_bytes!("../../cli/demo/kernels.co");

#[test]
fn an_event_whose_stream_is_destroyed_has_happened() {
    let mut front = Command::new(env!("CARGO_BIN_EXE_chain-worker"));
    front.arg(built_library("libfaulty_hip.so")).env(LIBRARY, library());
    let chain = Chain::start_command(front);
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
