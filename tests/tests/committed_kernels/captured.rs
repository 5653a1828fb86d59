//! Runs the kernels of the programs about graphs, launched by captured graphs.

use crate::check::{blocks, equal};
use hipr_proto::op;
use hipr_tests::{Gpu, args};

const NON_BLOCKING: u32 = 1;
/// hipStreamCaptureModeGlobal.
const GLOBAL: i32 = 0;

fn stream(gpu: &mut Gpu) -> u64 {
    gpu.wire().call(&op::StreamCreate { flags: NON_BLOCKING, priority: 0 }).expect("a stream").stream
}

/// Ends the capture of a stream and instantiates its graph.
fn ready(gpu: &mut Gpu, stream: u64) -> u64 {
    let graph = gpu.wire().call(&op::StreamEndCapture { stream }).expect("a graph").graph;
    gpu.wire().call(&op::GraphInstantiate { graph, flags: 0 }).expect("a ready graph").graph_exec
}

pub(crate) fn graphs(gpu: &mut Gpu) {
    const N: usize = 1000;
    let stream = stream(gpu);
    let data = gpu.zeroed::<f32>(N);
    // Its function has to be there: to look for it is no work of the stream.
    gpu.function("graph_apply");
    gpu.synchronize().expect("zeroed");
    gpu.wire().call(&op::StreamBeginCapture { stream, mode: GLOBAL }).expect("a capture");
    for (factor, offset, first) in [(2f32, 1f32, 0u32), (1.0, 100.0, 500)] {
        let step = [factor.to_bits(), offset.to_bits(), first];
        gpu.launch_on(stream, "graph_apply", blocks(N, 64), 64, 0, args![data, step, N as u32]);
    }
    let graph_exec = ready(gpu, stream);
    for round in 0..3 {
        let input: Vec<f32> = (0..N).map(|i| (i + round) as f32).collect();
        gpu.write_on(stream, data, &input);
        gpu.wire().forget(&op::GraphLaunch { graph_exec, stream });
        let more = |i| if i >= 500 { 100.0 } else { 0.0 };
        let want: Vec<f32> = input.iter().enumerate().map(|(i, x)| x * 2.0 + 1.0 + more(i)).collect();
        equal("launch", &gpu.download_on(stream, data), &want);
    }
}

pub(crate) fn capture(gpu: &mut Gpu) {
    const N: usize = 2000;
    let (first, second) = (stream(gpu), stream(gpu));
    let [forked, joined] =
        [(); 2].map(|()| gpu.wire().call(&op::EventCreate { flags: 0 }).expect("an event").event);
    let [input, a, b, out] = [(); 4].map(|()| gpu.zeroed::<f32>(N));
    let (grid, n) = (blocks(N, 256), N as u32);
    gpu.function("capture_scale");
    gpu.function("capture_add");
    gpu.synchronize().expect("zeroed");
    gpu.wire().call(&op::StreamBeginCapture { stream: first, mode: GLOBAL }).expect("a capture");
    gpu.wire().forget(&op::EventRecord { event: forked, stream: first });
    gpu.wire().forget(&op::StreamWaitEvent { stream: second, event: forked, flags: 0 });
    gpu.launch_on(first, "capture_scale", grid, 256, 0, args![a, input, 2f32, n]);
    gpu.launch_on(second, "capture_scale", grid, 256, 0, args![b, input, 3f32, n]);
    gpu.wire().forget(&op::EventRecord { event: joined, stream: second });
    gpu.wire().forget(&op::StreamWaitEvent { stream: first, event: joined, flags: 0 });
    gpu.launch_on(first, "capture_add", grid, 256, 0, args![out, a, b, n]);
    let graph_exec = ready(gpu, first);
    equal("nothing was done", &gpu.download_on(first, out), &[0f32; N]);
    for (round, stream) in [first, second, first].into_iter().enumerate() {
        let values: Vec<f32> = (0..N).map(|i| (i % 97 + round) as f32).collect();
        gpu.write_on(stream, input, &values);
        gpu.wire().forget(&op::GraphLaunch { graph_exec, stream });
        let want: Vec<f32> = values.iter().map(|x| x * 5.0).collect();
        equal("launch", &gpu.download_on(stream, out), &want);
    }
}
