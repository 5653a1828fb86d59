// Graphs: made node by node and launched again and again, with host memory that changes in between; questions about them; other
// parameters for a ready graph; a host function and a child graph inside.
#include "check.h"
#include "runtime.h"

struct Step { // more than 8 bytes, by value
    float factor, offset;
    unsigned first;
};

extern "C" __global__ void graph_apply(float* data, Step step, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && i >= step.first) data[i] = data[i] * step.factor + step.offset;
}

static const unsigned kCount = 1000;

static hipGraphNode_t add_apply(hipGraph_t graph, std::vector<hipGraphNode_t> after, float* data, Step step) {
    unsigned n = kCount;
    void* arguments[] = {&data, &step, &n};
    hipKernelNodeParams params = {};
    params.func = reinterpret_cast<void*>(graph_apply);
    params.gridDim = dim3((kCount + 63) / 64);
    params.blockDim = dim3(64);
    params.kernelParams = arguments;
    hipGraphNode_t node = nullptr;
    HIP_CHECK(hipGraphAddKernelNode(&node, graph, after.data(), after.size(), &params));
    return node;
}

static void count_call(void* data) { ++*static_cast<int*>(data); }

int main() {
    check::begin("graphs");
    DeviceArray<float> data(kCount);
    std::vector<float> input(kCount), output(kCount), want(kCount);
    int calls = 0;
    hipStream_t stream;
    HIP_CHECK(hipStreamCreate(&stream));
    hipGraph_t graph = nullptr, child = nullptr;
    HIP_CHECK(hipGraphCreate(&graph, 0));
    HIP_CHECK(hipGraphCreate(&child, 0));
    add_apply(child, {}, data.get(), {1, 100, 500});

    hipGraphNode_t up, down, host, inner;
    HIP_CHECK(hipGraphAddMemcpyNode1D(&up, graph, nullptr, 0, data.get(), input.data(), kCount * sizeof(float), hipMemcpyHostToDevice));
    hipGraphNode_t apply = add_apply(graph, {up}, data.get(), {2, 1, 0});
    hipHostNodeParams function = {count_call, &calls};
    HIP_CHECK(hipGraphAddHostNode(&host, graph, &apply, 1, &function));
    HIP_CHECK(hipGraphAddChildGraphNode(&inner, graph, &host, 1, child));
    HIP_CHECK(hipGraphAddMemcpyNode1D(&down, graph, &inner, 1, output.data(), data.get(), kCount * sizeof(float), hipMemcpyDeviceToHost));
    HIP_CHECK(hipGraphDestroy(child)); // it was copied

    size_t count = 0;
    HIP_CHECK(hipGraphGetNodes(graph, nullptr, &count));
    EXPECT(count == 5);
    HIP_CHECK(hipGraphGetEdges(graph, nullptr, nullptr, &count));
    EXPECT(count == 4);
    hipGraphNode_t roots[3] = {};
    count = 3;
    HIP_CHECK(hipGraphGetRootNodes(graph, roots, &count));
    EXPECT(count == 1 && roots[0] == up);
    count = 3;
    HIP_CHECK(hipGraphNodeGetDependencies(host, roots, &count));
    EXPECT(count == 1 && roots[0] == apply);
    hipGraphNodeType type;
    HIP_CHECK(hipGraphNodeGetType(inner, &type));
    EXPECT(type == hipGraphNodeTypeGraph);

    hipGraphExec_t exec = nullptr;
    HIP_CHECK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    for (int round = 0; round < 5; round++) {
        for (unsigned i = 0; i < kCount; i++) {
            input[i] = static_cast<float>(i + round);
            want[i] = input[i] * 2 + 1 + (i >= 500 ? 100 : 0);
        }
        HIP_CHECK(hipGraphLaunch(exec, stream));
        HIP_CHECK(hipStreamSynchronize(stream));
        check::equal("launch", output, want);
        EXPECT(calls == round + 1);
    }

    // Other parameters for one node, then for all of them from another graph.
    float* pointer = data.get();
    Step step = {3, 0, 0};
    unsigned n = kCount;
    void* arguments[] = {&pointer, &step, &n};
    hipKernelNodeParams params = {};
    params.func = reinterpret_cast<void*>(graph_apply);
    params.gridDim = dim3((kCount + 63) / 64);
    params.blockDim = dim3(64);
    params.kernelParams = arguments;
    HIP_CHECK(hipGraphExecKernelNodeSetParams(exec, apply, &params));
    HIP_CHECK(hipGraphLaunch(exec, stream));
    HIP_CHECK(hipStreamSynchronize(stream));
    for (unsigned i = 0; i < kCount; i++) want[i] = input[i] * 3 + (i >= 500 ? 100 : 0);
    check::equal("other parameters", output, want);
    hipGraph_t copy = nullptr;
    HIP_CHECK(hipGraphClone(&copy, graph));
    hipGraphNode_t error_node = nullptr;
    hipGraphExecUpdateResult result = hipGraphExecUpdateError;
    HIP_CHECK(hipGraphExecUpdate(exec, copy, &error_node, &result));
    EXPECT(result == hipGraphExecUpdateSuccess);
    HIP_CHECK(hipGraphLaunch(exec, stream));
    HIP_CHECK(hipStreamSynchronize(stream));
    for (unsigned i = 0; i < kCount; i++) want[i] = input[i] * 2 + 1 + (i >= 500 ? 100 : 0);
    check::equal("as before", output, want);
    hipGraphNode_t extra;
    HIP_CHECK(hipGraphAddEmptyNode(&extra, copy, nullptr, 0));
    EXPECT(hipGraphExecUpdate(exec, copy, &error_node, &result) == hipErrorGraphExecUpdateFailure);
    EXPECT(result == hipGraphExecUpdateErrorTopologyChanged);

    // Kernels of a capture are found, given another pointer in what they were launched with, and put to a ready graph.
    DeviceArray<float> other(kCount);
    other.fill_bytes(0);
    hipGraph_t captured = nullptr;
    HIP_CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed));
    graph_apply<<<dim3((kCount + 63) / 64), dim3(64), 0, stream>>>(data.get(), Step{0, 5, 0}, kCount);
    graph_apply<<<dim3((kCount + 63) / 64), dim3(64), 0, stream>>>(data.get(), Step{2, 0, 500}, kCount);
    HIP_CHECK(hipStreamEndCapture(stream, &captured));
    hipGraphExec_t captured_exec = nullptr;
    HIP_CHECK(hipGraphInstantiate(&captured_exec, captured, nullptr, nullptr, 0));
    hipGraphNode_t kernels[2] = {};
    count = 2;
    HIP_CHECK(hipGraphGetNodes(captured, kernels, &count));
    EXPECT(count == 2);
    float* other_pointer = other.get();
    for (hipGraphNode_t kernel : kernels) {
        hipKernelNodeParams launched = {};
        HIP_CHECK(hipGraphKernelNodeGetParams(kernel, &launched));
        EXPECT(launched.func == reinterpret_cast<void*>(graph_apply) && launched.blockDim.x == 64);
        EXPECT(*static_cast<float**>(launched.kernelParams[0]) == data.get());
        // What was returned belongs to the node, and ends when other parameters are set.
        Step same_step = *static_cast<Step*>(launched.kernelParams[1]);
        void* changed[] = {&other_pointer, &same_step, &n};
        launched.kernelParams = changed;
        HIP_CHECK(hipGraphKernelNodeSetParams(kernel, &launched));
    }
    HIP_CHECK(hipGraphExecUpdate(captured_exec, captured, &error_node, &result));
    HIP_CHECK(hipGraphLaunch(captured_exec, stream));
    HIP_CHECK(hipStreamSynchronize(stream));
    std::vector<float> fives(kCount, 5);
    for (unsigned i = 500; i < kCount; i++) fives[i] = 10;
    check::equal("another pointer", other.download(), fives);
    HIP_CHECK(hipGraphExecDestroy(captured_exec));
    HIP_CHECK(hipGraphDestroy(captured));

    // A circle cannot be made ready.
    hipGraph_t circle = nullptr;
    HIP_CHECK(hipGraphCreate(&circle, 0));
    hipGraphNode_t ends[2];
    HIP_CHECK(hipGraphAddEmptyNode(&ends[0], circle, nullptr, 0));
    HIP_CHECK(hipGraphAddEmptyNode(&ends[1], circle, &ends[0], 1));
    HIP_CHECK(hipGraphAddDependencies(circle, &ends[1], &ends[0], 1));
    hipGraphExec_t none = nullptr;
    EXPECT(hipGraphInstantiate(&none, circle, nullptr, nullptr, 0) == hipErrorInvalidValue);
    HIP_CHECK(hipGraphRemoveDependencies(circle, &ends[1], &ends[0], 1));
    HIP_CHECK(hipGraphInstantiate(&none, circle, nullptr, nullptr, 0));
    HIP_CHECK(hipGraphLaunch(none, stream));

    // A fill of rows, in a graph of its own.
    hipGraph_t rows = nullptr;
    HIP_CHECK(hipGraphCreate(&rows, 0));
    hipMemsetParams fill = {};
    fill.dst = data.get();
    // AMD's runtime multiplies the width of an element by its size once more.
    const bool by_bytes = check::amds_release() > 0;
    fill.elementSize = by_bytes ? 1 : 4;
    fill.value = by_bytes ? 0x40 : 0x40404040;
    fill.width = by_bytes ? 12 : 3;
    fill.height = 10;
    fill.pitch = 16 * sizeof(float);
    hipGraphNode_t filled;
    HIP_CHECK(hipGraphAddMemsetNode(&filled, rows, nullptr, 0, &fill));
    hipGraphExec_t rows_exec = nullptr;
    HIP_CHECK(hipGraphInstantiateWithFlags(&rows_exec, rows, 0));
    HIP_CHECK(hipGraphLaunch(rows_exec, stream));
    HIP_CHECK(hipStreamSynchronize(stream));
    for (unsigned y = 0; y < 10; y++)
        for (unsigned x = 0; x < 3; x++) want[y * 16 + x] = 0x1.80808p1f; // 0x40404040
    check::equal("rows", data.download(), want);

    for (hipGraphExec_t each : {exec, none, rows_exec}) HIP_CHECK(hipGraphExecDestroy(each));
    for (hipGraph_t each : {graph, copy, circle, rows}) HIP_CHECK(hipGraphDestroy(each));
    HIP_CHECK(hipStreamDestroy(stream));
    return check::finish();
}
