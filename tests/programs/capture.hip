// Stream captures: the work of one stream and of another that joins by events becomes a graph, which is launched several times; and what
// spoils a capture.
#include "check.h"
#include "runtime.h"

extern "C" __global__ void capture_scale(float* out, const float* in, float factor, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * factor;
}

extern "C" __global__ void capture_add(float* out, const float* a, const float* b, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] + b[i];
}

static void count_call(void* data) { ++*static_cast<int*>(data); }

static hipStreamCaptureStatus status_of(hipStream_t stream) {
    hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
    HIP_CHECK(hipStreamIsCapturing(stream, &status));
    return status;
}

// A stream that joined and was not waited for: there is no graph. Both streams are as before, but on AMD's runtime, where they go on capturing.
static void unjoined(float* in) {
    const unsigned n = 256;
    hipStream_t first, second;
    hipEvent_t forked;
    float* out = nullptr;
    HIP_CHECK(hipMalloc(reinterpret_cast<void**>(&out), n * sizeof(float)));
    HIP_CHECK(hipStreamCreateWithFlags(&first, hipStreamNonBlocking));
    HIP_CHECK(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
    HIP_CHECK(hipEventCreate(&forked));
    hipGraph_t graph = nullptr;
    HIP_CHECK(hipStreamBeginCapture(first, hipStreamCaptureModeRelaxed));
    HIP_CHECK(hipEventRecord(forked, first));
    HIP_CHECK(hipStreamWaitEvent(second, forked, 0));
    capture_scale<<<1, n, 0, second>>>(out, in, 3.0f, n);
    EXPECT(hipStreamEndCapture(second, &graph) == hipErrorStreamCaptureUnmatched);
    EXPECT(hipStreamEndCapture(first, &graph) == hipErrorStreamCaptureUnjoined);
    if (check::amds_release() > 0) return;
    std::vector<float> input(n), output(n);
    for (unsigned i = 0; i < n; i++) input[i] = static_cast<float>(i);
    HIP_CHECK(hipMemcpyAsync(in, input.data(), n * sizeof(float), hipMemcpyHostToDevice, second));
    capture_scale<<<1, n, 0, second>>>(out, in, 4.0f, n);
    HIP_CHECK(hipMemcpyAsync(output.data(), out, n * sizeof(float), hipMemcpyDeviceToHost, second));
    HIP_CHECK(hipStreamSynchronize(second));
    for (float& value : input) value *= 4;
    check::equal("after a stream that was not joined", output, input);
    HIP_CHECK(hipEventDestroy(forked));
    HIP_CHECK(hipStreamDestroy(first));
    HIP_CHECK(hipStreamDestroy(second));
    HIP_CHECK(hipFree(out));
}

static void captures() {
    const unsigned n = 2000, blocks = (n + 255) / 256;
    DeviceArray<float> in(n), a(n), b(n), out(n);
    std::vector<float> input(n), output(n, -1), want(n);
    int calls = 0;
    hipStream_t first, second;
    hipEvent_t forked, joined;
    HIP_CHECK(hipStreamCreateWithFlags(&first, hipStreamNonBlocking));
    HIP_CHECK(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
    HIP_CHECK(hipEventCreate(&forked));
    HIP_CHECK(hipEventCreate(&joined));
    out.fill_bytes(0);
    HIP_CHECK(hipDeviceSynchronize());

    HIP_CHECK(hipStreamBeginCapture(first, hipStreamCaptureModeGlobal));
    EXPECT(status_of(first) == hipStreamCaptureStatusActive && status_of(second) == hipStreamCaptureStatusNone);
    HIP_CHECK(hipMemcpyAsync(in.get(), input.data(), n * sizeof(float), hipMemcpyHostToDevice, first));
    HIP_CHECK(hipEventRecord(forked, first));
    HIP_CHECK(hipStreamWaitEvent(second, forked, 0));
    EXPECT(status_of(second) == hipStreamCaptureStatusActive);
    capture_scale<<<blocks, 256, 0, first>>>(a.get(), in.get(), 2.0f, n);
    capture_scale<<<blocks, 256, 0, second>>>(b.get(), in.get(), 3.0f, n);
    HIP_CHECK(hipEventRecord(joined, second));
    HIP_CHECK(hipStreamWaitEvent(first, joined, 0));
    capture_add<<<blocks, 256, 0, first>>>(out.get(), a.get(), b.get(), n);
    HIP_CHECK(hipLaunchHostFunc(first, count_call, &calls));
    HIP_CHECK(hipMemcpyAsync(output.data(), out.get(), n * sizeof(float), hipMemcpyDeviceToHost, first));
    hipGraph_t graph = nullptr;
    HIP_CHECK(hipStreamEndCapture(first, &graph));
    EXPECT(status_of(first) == hipStreamCaptureStatusNone && status_of(second) == hipStreamCaptureStatusNone);
    EXPECT(output[0] == -1 && calls == 0); // nothing was done
    check::equal("untouched", out.download(), std::vector<float>(n, 0.0f));
    size_t count = 0;
    HIP_CHECK(hipGraphGetNodes(graph, nullptr, &count));
    EXPECT(count == 6);
    HIP_CHECK(hipGraphGetEdges(graph, nullptr, nullptr, &count));
    EXPECT(count == 6);

    hipGraphExec_t exec = nullptr;
    HIP_CHECK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    for (int round = 0; round < 4; round++) {
        for (unsigned i = 0; i < n; i++) {
            input[i] = static_cast<float>(i % 97 + round);
            want[i] = input[i] * 5;
        }
        HIP_CHECK(hipGraphLaunch(exec, round % 2 ? first : second));
        HIP_CHECK(hipDeviceSynchronize());
        check::equal("launch", output, want);
        EXPECT(calls == round + 1);
    }
    HIP_CHECK(hipGraphExecDestroy(exec));
    HIP_CHECK(hipGraphDestroy(graph));

    // The null stream cannot be captured, and a capture has to end where it began.
    EXPECT(hipStreamBeginCapture(nullptr, hipStreamCaptureModeGlobal) == hipErrorStreamCaptureUnsupported);
    EXPECT(hipStreamEndCapture(first, &graph) == hipErrorIllegalState);
    // Waiting for a stream that captures spoils the capture.
    HIP_CHECK(hipStreamBeginCapture(first, hipStreamCaptureModeThreadLocal));
    EXPECT(hipStreamSynchronize(first) == hipErrorStreamCaptureUnsupported);
    EXPECT(status_of(first) == hipStreamCaptureStatusInvalidated);
    EXPECT(hipStreamEndCapture(first, &graph) == hipErrorStreamCaptureInvalidated && graph == nullptr);
    // Both streams work as before.
    capture_scale<<<blocks, 256, 0, second>>>(b.get(), in.get(), 4.0f, n);
    HIP_CHECK(hipStreamSynchronize(second));
    for (unsigned i = 0; i < n; i++) want[i] = input[i] * 4;
    check::equal("afterwards", b.download(), want);

    HIP_CHECK(hipEventDestroy(forked));
    HIP_CHECK(hipEventDestroy(joined));
    HIP_CHECK(hipStreamDestroy(first));
    HIP_CHECK(hipStreamDestroy(second));
}

int main() {
    check::begin("capture");
    captures();
    float* in = nullptr;
    HIP_CHECK(hipMalloc(reinterpret_cast<void**>(&in), 256 * sizeof(float)));
    unjoined(in);
    return check::finish();
}
