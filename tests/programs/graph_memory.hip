// Graphs allocate memory and free it: nodes, captures of hipMallocAsync and hipFreeAsync, and what is told of such memory.
#include "runtime.h"

__global__ void ramp(int* at, int first) { at[threadIdx.x] = first + static_cast<int>(threadIdx.x); }
__global__ void add(int* at, const int* more) { at[threadIdx.x] += more[threadIdx.x]; }

static const size_t kCount = 256, kBytes = kCount * sizeof(int);
static hipStream_t stream = nullptr;

static bool is_hipr() { return check::amds_release() == 0; }

static hipGraph_t create() {
    hipGraph_t graph = nullptr;
    HIP_CHECK(hipGraphCreate(&graph, 0));
    return graph;
}

static hipMemAllocNodeParams wanted(size_t bytes) {
    hipMemAllocNodeParams params{};
    params.poolProps.allocType = hipMemAllocationTypePinned;
    params.poolProps.location.type = hipMemLocationTypeDevice;
    params.bytesize = bytes;
    return params;
}

static hipGraphNode_t add_allocation(hipGraph_t graph, int*& at, size_t bytes = kBytes) {
    hipGraphNode_t node = nullptr;
    hipMemAllocNodeParams params = wanted(bytes);
    HIP_CHECK(hipGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
    at = static_cast<int*>(params.dptr);
    return node;
}

static hipGraphNode_t add_ramp(hipGraph_t graph, hipGraphNode_t before, int* at, int first) {
    void* arguments[] = {&at, &first};
    hipKernelNodeParams params{};
    params.func = reinterpret_cast<void*>(ramp);
    params.gridDim = dim3(1);
    params.blockDim = dim3(kCount);
    params.kernelParams = arguments;
    hipGraphNode_t node = nullptr;
    HIP_CHECK(hipGraphAddKernelNode(&node, graph, &before, 1, &params));
    return node;
}

static hipGraphExec_t instantiate(hipGraph_t graph) {
    hipGraphExec_t exec = nullptr;
    HIP_CHECK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    return exec;
}

static void run(hipGraphExec_t exec) {
    HIP_CHECK(hipGraphLaunch(exec, stream));
    HIP_CHECK(hipStreamSynchronize(stream));
}

static std::vector<int> from(int first) {
    std::vector<int> values(kCount);
    for (size_t i = 0; i < kCount; i++) values[i] = first + static_cast<int>(i);
    return values;
}

static uint64_t told(hipGraphMemAttributeType attribute) {
    uint64_t value = 0;
    HIP_CHECK(hipDeviceGetGraphMemAttribute(0, attribute, &value));
    return value;
}

static void reset_highs() {
    uint64_t zero = 0;
    HIP_CHECK(hipDeviceSetGraphMemAttribute(0, hipGraphMemAttrUsedMemHigh, &zero));
    HIP_CHECK(hipDeviceSetGraphMemAttribute(0, hipGraphMemAttrReservedMemHigh, &zero));
}

// A graph that frees what it allocates can be launched again and again.
static void allocates_and_frees() {
    reset_highs();
    hipGraph_t graph = create();
    int* at = nullptr;
    std::vector<int> out(kCount);
    hipGraphNode_t allocation = add_allocation(graph, at);
    hipGraphNode_t kernel = add_ramp(graph, allocation, at, 7);
    hipGraphNode_t copy = nullptr, release = nullptr;
    HIP_CHECK(hipGraphAddMemcpyNode1D(&copy, graph, &kernel, 1, out.data(), at, kBytes, hipMemcpyDeviceToHost));
    HIP_CHECK(hipGraphAddMemFreeNode(&release, graph, &copy, 1, at));
    hipGraphNodeType type{};
    HIP_CHECK(hipGraphNodeGetType(allocation, &type));
    EXPECT(type == hipGraphNodeTypeMemAlloc);
    HIP_CHECK(hipGraphNodeGetType(release, &type));
    EXPECT(type == hipGraphNodeTypeMemFree);
    hipMemAllocNodeParams params{};
    HIP_CHECK(hipGraphMemAllocNodeGetParams(allocation, &params));
    EXPECT(params.dptr == at && params.bytesize == kBytes && params.poolProps.location.type == hipMemLocationTypeDevice);
    EXPECT(params.poolProps.allocType == hipMemAllocationTypePinned && params.poolProps.location.id == 0);
    void* freed = nullptr;
    HIP_CHECK(hipGraphMemFreeNodeGetParams(release, &freed));
    EXPECT(freed == at);
    hipPointerAttribute_t attributes{};
    HIP_CHECK(hipPointerGetAttributes(&attributes, at));
    EXPECT(attributes.type == hipMemoryTypeDevice && attributes.device == 0);
    hipGraphExec_t exec = instantiate(graph), second = nullptr;
    EXPECT_ERROR(hipGraphInstantiate(&second, graph, nullptr, nullptr, 0), hipErrorNotSupported);
    hipGraph_t copied = nullptr;
    EXPECT_ERROR(hipGraphClone(&copied, graph), hipErrorNotSupported);
    EXPECT_ERROR(hipGraphDestroyNode(allocation), hipErrorNotSupported);
    EXPECT_ERROR(hipGraphDestroyNode(release), hipErrorNotSupported);
    for (int launch = 0; launch < 5; launch++) {
        std::fill(out.begin(), out.end(), 0);
        run(exec);
        check::equal("allocated, filled, copied, freed", out, from(7));
    }
    EXPECT(told(hipGraphMemAttrUsedMemCurrent) == 0 && told(hipGraphMemAttrUsedMemHigh) >= kBytes);
    EXPECT(told(hipGraphMemAttrReservedMemHigh) >= kBytes);
    HIP_CHECK(hipGraphExecDestroy(exec));
    if (is_hipr()) { // what was instantiated is gone, so that there may be another: not with AMD's runtime
        exec = instantiate(graph);
        run(exec);
        HIP_CHECK(hipGraphExecDestroy(exec));
    }
    HIP_CHECK(hipGraphDestroy(graph));
    HIP_CHECK(hipDeviceGraphMemTrim(0));
    EXPECT(told(hipGraphMemAttrUsedMemCurrent) == 0 && told(hipGraphMemAttrReservedMemCurrent) == 0);
}

// Memory that a graph allocates and does not free is the program's.
static void outlives_its_launch() {
    hipGraph_t graph = create();
    int* at = nullptr;
    add_ramp(graph, add_allocation(graph, at), at, 100);
    hipGraphExec_t exec = instantiate(graph);
    run(exec);
    std::vector<int> out(kCount);
    HIP_CHECK(hipMemcpy(out.data(), at, kBytes, hipMemcpyDeviceToHost));
    check::equal("behind a launch", out, from(100));
    EXPECT(told(hipGraphMemAttrUsedMemCurrent) >= kBytes && told(hipGraphMemAttrReservedMemCurrent) >= kBytes);
    EXPECT_ERROR(hipGraphLaunch(exec, stream), hipErrorInvalidValue);
    HIP_CHECK(hipFree(at));
    EXPECT_ERROR(hipFree(at), hipErrorInvalidValue);
    EXPECT(told(hipGraphMemAttrUsedMemCurrent) == 0);
    if (is_hipr()) { // AMD's runtime launches the graph no more
        run(exec);
        HIP_CHECK(hipFreeAsync(at, stream));
        run(exec);
        // It is the program's also when the graph is gone.
        HIP_CHECK(hipGraphExecDestroy(exec));
        HIP_CHECK(hipGraphDestroy(graph));
        HIP_CHECK(hipMemcpy(out.data(), at, kBytes, hipMemcpyDeviceToHost));
        check::equal("behind its graph", out, from(100));
        HIP_CHECK(hipFree(at));
        EXPECT_ERROR(hipFree(at), hipErrorInvalidValue);
        return;
    }
    HIP_CHECK(hipGraphExecDestroy(exec));
    HIP_CHECK(hipGraphDestroy(graph));
}

// One graph allocates, another one frees.
static void freed_by_another_graph() {
    if (!is_hipr()) return;
    hipGraph_t graph = create(), other = create();
    int* at = nullptr;
    add_ramp(graph, add_allocation(graph, at), at, 5);
    hipGraphNode_t release = nullptr;
    HIP_CHECK(hipGraphAddMemFreeNode(&release, other, nullptr, 0, at));
    hipGraphExec_t allocates = instantiate(graph), frees = instantiate(other);
    for (int launch = 0; launch < 3; launch++) {
        run(allocates);
        EXPECT_ERROR(hipGraphLaunch(allocates, stream), hipErrorInvalidValue);
        run(frees);
    }
    EXPECT(told(hipGraphMemAttrUsedMemCurrent) == 0);
    for (hipGraphExec_t exec : {allocates, frees}) HIP_CHECK(hipGraphExecDestroy(exec));
    for (hipGraph_t each : {graph, other}) HIP_CHECK(hipGraphDestroy(each));
}

static void frees_at_a_launch() {
    hipGraph_t graph = create();
    int* at = nullptr;
    add_ramp(graph, add_allocation(graph, at), at, 1);
    hipGraphExec_t exec = nullptr;
    HIP_CHECK(hipGraphInstantiateWithFlags(&exec, graph, hipGraphInstantiateFlagAutoFreeOnLaunch));
    unsigned long long flags = 0;
    HIP_CHECK(hipGraphExecGetFlags(exec, &flags));
    if (is_hipr()) EXPECT(flags == hipGraphInstantiateFlagAutoFreeOnLaunch);
    EXPECT_ERROR(hipGraphExecGetFlags(exec, nullptr), hipErrorInvalidValue);
    for (int launch = 0; launch < 3; launch++) run(exec);
    HIP_CHECK(hipFree(at));
    HIP_CHECK(hipGraphExecDestroy(exec));
    HIP_CHECK(hipGraphDestroy(graph));
}

// hipMallocAsync and hipFreeAsync of a stream that captures are nodes, and each launch has the memory for itself.
static void captured() {
    DeviceArray<int> sum(kCount);
    sum.fill_bytes(0);
    HIP_CHECK(hipDeviceSynchronize());
    hipGraph_t graph = nullptr;
    int* at = nullptr;
    HIP_CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    HIP_CHECK(hipMallocAsync(reinterpret_cast<void**>(&at), kBytes, stream));
    ramp<<<1, kCount, 0, stream>>>(at, 3);
    add<<<1, kCount, 0, stream>>>(sum.get(), at);
    HIP_CHECK(hipFreeAsync(at, stream));
    HIP_CHECK(hipStreamEndCapture(stream, &graph));
    size_t count = 0;
    HIP_CHECK(hipGraphGetNodes(graph, nullptr, &count));
    std::vector<hipGraphNode_t> nodes(count);
    HIP_CHECK(hipGraphGetNodes(graph, nodes.data(), &count));
    std::vector<int> types;
    for (hipGraphNode_t node : nodes) {
        hipGraphNodeType type{};
        HIP_CHECK(hipGraphNodeGetType(node, &type));
        types.push_back(type);
    }
    check::equal("types of nodes", types, {hipGraphNodeTypeMemAlloc, hipGraphNodeTypeKernel, hipGraphNodeTypeKernel, hipGraphNodeTypeMemFree});
    // Memory of the same size that is allocated meanwhile is other memory.
    int* other = nullptr;
    HIP_CHECK(hipMallocAsync(reinterpret_cast<void**>(&other), kBytes, stream));
    ramp<<<1, kCount, 0, stream>>>(other, 9000);
    hipGraphExec_t exec = instantiate(graph);
    const int launches = 4;
    for (int launch = 0; launch < launches; launch++) HIP_CHECK(hipGraphLaunch(exec, stream));
    HIP_CHECK(hipStreamSynchronize(stream));
    std::vector<int> want = from(3), kept(kCount);
    for (int& value : want) value *= launches;
    check::equal("sum over launches", sum.download(), want);
    HIP_CHECK(hipMemcpy(kept.data(), other, kBytes, hipMemcpyDeviceToHost));
    check::equal("memory beside a graph's", kept, from(9000));
    HIP_CHECK(hipFreeAsync(other, stream));
    HIP_CHECK(hipGraphExecDestroy(exec));
    HIP_CHECK(hipGraphDestroy(graph));
}

static void by_parameters() {
    hipGraph_t graph = create();
    alignas(16) char bytes[sizeof(hipGraphNodeParams)] = {};
    hipGraphNodeParams& params = *reinterpret_cast<hipGraphNodeParams*>(bytes);
    params.type = hipGraphNodeTypeMemAlloc;
    params.alloc = wanted(kBytes);
    hipGraphNode_t allocation = nullptr, release = nullptr;
    HIP_CHECK(hipGraphAddNode(&allocation, graph, nullptr, 0, &params));
    void* at = params.alloc.dptr;
    EXPECT(at != nullptr);
    params.type = hipGraphNodeTypeMemFree;
    params.free.dptr = at;
    HIP_CHECK(hipGraphAddNode(&release, graph, &allocation, 1, &params));
    hipGraphExec_t exec = instantiate(graph);
    run(exec);
    HIP_CHECK(hipGraphExecDestroy(exec));
    HIP_CHECK(hipGraphDestroy(graph));
}

static void errors() {
    hipGraph_t graph = create();
    hipGraphNode_t node = nullptr;
    hipMemAllocNodeParams good = wanted(kBytes), bad = good;
    EXPECT_ERROR(hipGraphAddMemAllocNode(nullptr, graph, nullptr, 0, &good), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphAddMemAllocNode(&node, nullptr, nullptr, 0, &good), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphAddMemAllocNode(&node, graph, nullptr, 0, nullptr), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphAddMemAllocNode(&node, graph, nullptr, 1, &good), hipErrorInvalidValue);
    bad.bytesize = 0;
    EXPECT_ERROR(hipGraphAddMemAllocNode(&node, graph, nullptr, 0, &bad), hipErrorInvalidValue);
    (bad = good).poolProps.allocType = hipMemAllocationTypeInvalid;
    EXPECT_ERROR(hipGraphAddMemAllocNode(&node, graph, nullptr, 0, &bad), hipErrorInvalidValue);
    (bad = good).poolProps.location.type = hipMemLocationTypeInvalid;
    EXPECT_ERROR(hipGraphAddMemAllocNode(&node, graph, nullptr, 0, &bad), hipErrorInvalidValue);
    for (int device : {-1, 99}) {
        (bad = good).poolProps.location.id = device;
        EXPECT_ERROR(hipGraphAddMemAllocNode(&node, graph, nullptr, 0, &bad), hipErrorInvalidValue);
    }
    DeviceArray<int> memory(4);
    EXPECT_ERROR(hipGraphAddMemFreeNode(&node, graph, nullptr, 0, memory.get()), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphAddMemFreeNode(&node, graph, nullptr, 0, nullptr), hipErrorInvalidValue);
    int* at = nullptr;
    hipGraphNode_t allocation = add_allocation(graph, at);
    void* freed = nullptr;
    hipMemAllocNodeParams params{};
    EXPECT_ERROR(hipGraphAddMemFreeNode(nullptr, graph, nullptr, 0, at), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphAddMemFreeNode(&node, nullptr, nullptr, 0, at), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphMemFreeNodeGetParams(allocation, &freed), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphMemAllocNodeGetParams(allocation, nullptr), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphMemAllocNodeGetParams(nullptr, &params), hipErrorInvalidValue);
    uint64_t value = 0, five = 5;
    for (int attribute : {-1, 4}) {
        EXPECT_ERROR(hipDeviceGetGraphMemAttribute(0, static_cast<hipGraphMemAttributeType>(attribute), &value), hipErrorInvalidValue);
        EXPECT_ERROR(hipDeviceSetGraphMemAttribute(0, static_cast<hipGraphMemAttributeType>(attribute), &value), hipErrorInvalidValue);
    }
    EXPECT_ERROR(hipDeviceGetGraphMemAttribute(99, hipGraphMemAttrUsedMemCurrent, &value), hipErrorInvalidDevice);
    EXPECT_ERROR(hipDeviceGetGraphMemAttribute(0, hipGraphMemAttrUsedMemCurrent, nullptr), hipErrorInvalidValue);
    EXPECT_ERROR(hipDeviceSetGraphMemAttribute(0, hipGraphMemAttrUsedMemCurrent, &value), hipErrorInvalidValue);
    EXPECT_ERROR(hipDeviceSetGraphMemAttribute(0, hipGraphMemAttrUsedMemHigh, &five), hipErrorInvalidValue);
    EXPECT_ERROR(hipDeviceSetGraphMemAttribute(0, hipGraphMemAttrUsedMemHigh, nullptr), hipErrorInvalidValue);
    EXPECT_ERROR(hipDeviceGraphMemTrim(99), hipErrorInvalidDevice);
    HIP_CHECK(hipGraphDestroy(graph));
}

int main() {
    check::begin("graph_memory");
    HIP_CHECK(hipStreamCreate(&stream));
    allocates_and_frees();
    outlives_its_launch();
    freed_by_another_graph();
    frees_at_a_launch();
    captured();
    by_parameters();
    errors();
    HIP_CHECK(hipStreamDestroy(stream));
    return check::finish();
}
