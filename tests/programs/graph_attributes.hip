// Attributes of kernel nodes: a node has the one that was set last, keeps it through other parameters and in copies of its graph, and a
// cooperative one is launched so.
#include <hip/hip_cooperative_groups.h>

#include "runtime.h"

namespace cg = cooperative_groups;

constexpr int kBlocks = 8, kThreads = 64;

// Each block counts, and sees all others' counts behind the barrier.
__global__ void meet(int* count, int* seen) {
    if (threadIdx.x == 0) atomicAdd(count, 1);
    cg::this_grid().sync();
    if (threadIdx.x == 0) seen[blockIdx.x] = __hip_atomic_load(count, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

__global__ void nothing() {}

static hipGraph_t graph = nullptr;

static hipGraphNode_t add() {
    hipKernelNodeParams params{};
    params.func = reinterpret_cast<void*>(nothing);
    params.gridDim = params.blockDim = dim3(1);
    void* none[] = {nullptr};
    params.kernelParams = none;
    hipGraphNode_t node = nullptr;
    HIP_CHECK(hipGraphAddKernelNode(&node, graph, nullptr, 0, &params));
    return node;
}

static const auto window_id = hipLaunchAttributeAccessPolicyWindow;
static const auto cooperative_id = hipLaunchAttributeCooperative;

static hipError_t set(hipGraphNode_t node, int cooperative) {
    hipLaunchAttributeValue value{};
    value.cooperative = cooperative;
    return hipGraphKernelNodeSetAttribute(node, cooperative_id, &value);
}

static hipError_t set_window(hipGraphNode_t node, float hit_ratio, hipAccessProperty miss, size_t bytes) {
    hipLaunchAttributeValue value{};
    value.accessPolicyWindow.hitRatio = hit_ratio;
    value.accessPolicyWindow.hitProp = hipAccessPropertyStreaming;
    value.accessPolicyWindow.missProp = miss;
    value.accessPolicyWindow.num_bytes = bytes;
    return hipGraphKernelNodeSetAttribute(node, window_id, &value);
}

// The value of a node's attribute, which must be the one that it has or 0.
static int cooperative(hipGraphNode_t node) {
    hipLaunchAttributeValue value;
    std::memset(&value, 0x55, sizeof value);
    HIP_CHECK(hipGraphKernelNodeGetAttribute(node, cooperative_id, &value));
    return value.cooperative;
}

static hipAccessPolicyWindow window(hipGraphNode_t node) {
    hipLaunchAttributeValue value;
    std::memset(&value, 0x55, sizeof value);
    HIP_CHECK(hipGraphKernelNodeGetAttribute(node, window_id, &value));
    return value.accessPolicyWindow;
}

static void get_and_set() {
    hipLaunchAttributeValue value{};
    hipGraphNode_t node = add(), empty = nullptr;
    HIP_CHECK(hipGraphAddEmptyNode(&empty, graph, nullptr, 0));
    EXPECT(cooperative(node) == 0 && window(node).base_ptr == nullptr && window(node).hitRatio == 0);
    HIP_CHECK(hipGraphKernelNodeGetAttribute(node, hipLaunchAttributePriority, &value));
    EXPECT(value.priority == 0);
    for (int id : {0, 3, 9, 10, 11, -1}) {
        EXPECT_ERROR(hipGraphKernelNodeGetAttribute(node, static_cast<hipLaunchAttributeID>(id), &value), hipErrorInvalidValue);
        EXPECT_ERROR(hipGraphKernelNodeSetAttribute(node, static_cast<hipLaunchAttributeID>(id), &value), hipErrorInvalidValue);
    }
    for (int given : {1, 0, -1, 7}) {
        HIP_CHECK(set(node, given));
        EXPECT(cooperative(node) == given);
    }
    EXPECT_ERROR(hipGraphKernelNodeGetAttribute(node, window_id, &value), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphKernelNodeGetAttribute(node, hipLaunchAttributePriority, &value), hipErrorInvalidValue);
    for (int priority : {-1, 0, 1}) {
        value.priority = priority;
        EXPECT_ERROR(hipGraphKernelNodeSetAttribute(node, hipLaunchAttributePriority, &value), hipErrorInvalidValue);
    }
    EXPECT_ERROR(set_window(node, 1.5f, hipAccessPropertyNormal, 0), hipErrorInvalidValue);
    EXPECT_ERROR(set_window(node, -1, hipAccessPropertyNormal, 0), hipErrorInvalidValue);
    EXPECT_ERROR(set_window(node, 0, hipAccessPropertyNormal, 1), hipErrorInvalidValue);
    EXPECT_ERROR(set_window(node, 0.5f, hipAccessPropertyPersisting, 0), hipErrorInvalidValue);
    EXPECT_ERROR(set_window(node, 0.5f, hipAccessPropertyNormal, SIZE_MAX), hipErrorInvalidValue);
    EXPECT(cooperative(node) == 7);
    HIP_CHECK(set_window(node, 0.5f, hipAccessPropertyNormal, 0));
    EXPECT(window(node).hitRatio == 0.5f && window(node).hitProp == hipAccessPropertyStreaming && window(node).num_bytes == 0);
    EXPECT_ERROR(hipGraphKernelNodeGetAttribute(node, cooperative_id, &value), hipErrorInvalidValue);

    EXPECT_ERROR(hipGraphKernelNodeGetAttribute(nullptr, cooperative_id, &value), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphKernelNodeGetAttribute(empty, cooperative_id, &value), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphKernelNodeGetAttribute(node, window_id, nullptr), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphKernelNodeSetAttribute(nullptr, cooperative_id, &value), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphKernelNodeSetAttribute(empty, cooperative_id, &value), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphKernelNodeSetAttribute(node, cooperative_id, nullptr), hipErrorInvalidValue);
}

static void copies() {
    hipGraphNode_t plain = add(), one = add(), two = add(), other = add();
    HIP_CHECK(hipGraphKernelNodeCopyAttributes(plain, one));
    EXPECT(cooperative(one) == 0 && window(one).hitRatio == 0);
    HIP_CHECK(set(one, 3));
    HIP_CHECK(hipGraphKernelNodeCopyAttributes(one, two));
    EXPECT(cooperative(two) == 3);
    HIP_CHECK(set(one, 4));
    HIP_CHECK(hipGraphKernelNodeCopyAttributes(one, two));
    EXPECT(cooperative(two) == 4);
    HIP_CHECK(hipGraphKernelNodeCopyAttributes(one, one));
    EXPECT(cooperative(one) == 4);
    EXPECT_ERROR(hipGraphKernelNodeCopyAttributes(plain, one), hipErrorInvalidContext);
    HIP_CHECK(set_window(other, 1, hipAccessPropertyNormal, 0));
    EXPECT_ERROR(hipGraphKernelNodeCopyAttributes(other, one), hipErrorInvalidContext);
    EXPECT(cooperative(one) == 4 && cooperative(plain) == 0 && window(other).hitRatio == 1);
    EXPECT_ERROR(hipGraphKernelNodeCopyAttributes(nullptr, one), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphKernelNodeCopyAttributes(one, nullptr), hipErrorInvalidValue);
    // AMD's runtime takes any node for a kernel's.
    if (check::amds_release() == 0) {
        hipGraphNode_t empty = nullptr;
        HIP_CHECK(hipGraphAddEmptyNode(&empty, graph, nullptr, 0));
        EXPECT_ERROR(hipGraphKernelNodeCopyAttributes(one, empty), hipErrorInvalidValue);
        EXPECT_ERROR(hipGraphKernelNodeCopyAttributes(empty, two), hipErrorInvalidValue);
    }
}

// Attributes outlive what is done with nodes and graphs, and decide how the kernel is launched.
static void launches() {
    int *count = nullptr, *seen = nullptr;
    HIP_CHECK(hipMalloc(&count, sizeof *count));
    HIP_CHECK(hipMalloc(&seen, kBlocks * sizeof *seen));
    void* arguments[] = {&count, &seen};
    hipKernelNodeParams params{};
    params.func = reinterpret_cast<void*>(meet);
    params.gridDim = dim3(kBlocks);
    params.blockDim = dim3(kThreads);
    params.kernelParams = arguments;
    hipGraph_t meeting = nullptr, clone = nullptr;
    HIP_CHECK(hipGraphCreate(&meeting, 0));
    hipGraphNode_t zero = nullptr, node = nullptr, found = nullptr;
    hipMemsetParams fill{};
    fill.dst = count;
    fill.elementSize = sizeof *count;
    fill.width = fill.height = 1;
    HIP_CHECK(hipGraphAddMemsetNode(&zero, meeting, nullptr, 0, &fill));
    HIP_CHECK(hipGraphAddKernelNode(&node, meeting, &zero, 1, &params));
    HIP_CHECK(set(node, 1));
    HIP_CHECK(hipGraphKernelNodeSetParams(node, &params));
    EXPECT(cooperative(node) == 1);
    HIP_CHECK(hipGraphClone(&clone, meeting));
    HIP_CHECK(hipGraphNodeFindInClone(&found, node, clone));
    EXPECT(cooperative(found) == 1);
    // Release 6.4.3 makes the device's heap ready with the first launch of a kernel that may use it, over a cooperative one's barrier.
    nothing<<<1, 1>>>();
    HIP_CHECK(hipDeviceSynchronize());
    // AMD's runtime launches such a node like any other, and the barrier has nothing to count with.
    if (check::amds_release() == 0) {
        hipGraphExec_t exec = nullptr;
        HIP_CHECK(hipGraphInstantiate(&exec, clone, nullptr, nullptr, 0));
        HIP_CHECK(hipGraphExecKernelNodeSetParams(exec, found, &params));
        std::vector<int> got(kBlocks);
        for (int round = 0; round < 3; round++) {
            HIP_CHECK(hipMemset(seen, 0, kBlocks * sizeof *seen));
            HIP_CHECK(hipGraphLaunch(exec, nullptr));
            HIP_CHECK(hipMemcpy(got.data(), seen, kBlocks * sizeof *seen, hipMemcpyDeviceToHost));
            check::equal("blocks that met", got, std::vector<int>(kBlocks, kBlocks));
        }
        HIP_CHECK(hipGraphExecDestroy(exec));
        // No device has so many blocks at once.
        params.func = reinterpret_cast<void*>(nothing);
        params.gridDim = dim3(1000000);
        HIP_CHECK(hipGraphKernelNodeSetParams(node, &params));
        HIP_CHECK(hipGraphInstantiate(&exec, meeting, nullptr, nullptr, 0));
        hipError_t launched = hipGraphLaunch(exec, nullptr), waited = hipDeviceSynchronize();
        EXPECT_ERROR(launched == hipSuccess ? waited : launched, hipErrorCooperativeLaunchTooLarge);
        HIP_CHECK(hipGraphExecDestroy(exec));
    }
    HIP_CHECK(hipGraphDestroy(clone));
    HIP_CHECK(hipGraphDestroy(meeting));
    HIP_CHECK(hipFree(count));
    HIP_CHECK(hipFree(seen));
}

int main() {
    check::begin("graph_attributes");
    HIP_CHECK(hipGraphCreate(&graph, 0));
    get_and_set();
    copies();
    launches();
    HIP_CHECK(hipGraphDestroy(graph));
    return check::finish();
}
