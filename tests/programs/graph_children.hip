// Child graphs in an instantiated graph get the parameters of another graph of the same shape, as they are at the time of the call.
#include "runtime.h"

__global__ void put(int* at, int value) { *at = value; }
__global__ void put_more(int* at, int value) { *at = value + 1000; }

static int* values = nullptr; // four on the device

static hipGraph_t create() {
    hipGraph_t graph = nullptr;
    HIP_CHECK(hipGraphCreate(&graph, 0));
    return graph;
}

static hipGraphNode_t add_child(hipGraph_t graph, hipGraphNode_t before, hipGraph_t child) {
    hipGraphNode_t node = nullptr;
    HIP_CHECK(hipGraphAddChildGraphNode(&node, graph, &before, before ? 1 : 0, child));
    return node;
}

static hipGraphNode_t add_empty(hipGraph_t graph) {
    hipGraphNode_t node = nullptr;
    HIP_CHECK(hipGraphAddEmptyNode(&node, graph, nullptr, 0));
    return node;
}

// A launch of a kernel that puts a value.
struct Put {
    int* at;
    int value;
    void* arguments[2] = {&at, &value};
    hipKernelNodeParams params{};

    Put(int index, int value, void (*kernel)(int*, int)) : at(values + index), value(value) {
        params.func = reinterpret_cast<void*>(kernel);
        params.gridDim = params.blockDim = dim3(1);
        params.kernelParams = arguments;
    }
    Put(const Put&) = delete;
};

static hipGraphNode_t add_put(hipGraph_t graph, hipGraphNode_t before, int index, int value, void (*kernel)(int*, int) = put) {
    Put given(index, value, kernel);
    hipGraphNode_t node = nullptr;
    HIP_CHECK(hipGraphAddKernelNode(&node, graph, &before, before ? 1 : 0, &given.params));
    return node;
}

static hipGraphNode_t add_fill(hipGraph_t graph, int index, int value) {
    hipMemsetParams fill{};
    fill.dst = values + index;
    fill.elementSize = 4;
    fill.value = value;
    fill.width = fill.height = 1;
    hipGraphNode_t node = nullptr;
    HIP_CHECK(hipGraphAddMemsetNode(&node, graph, nullptr, 0, &fill));
    return node;
}

// A fill, and a kernel behind it.
static hipGraph_t two_nodes(int index, int filled, int given, void (*kernel)(int*, int) = put) {
    hipGraph_t graph = create();
    add_put(graph, add_fill(graph, index, filled), index + 1, given, kernel);
    return graph;
}

// Each launch of a graph, the first ones and those that repeat it, leaves these values.
static void leaves(const char* what, hipGraphExec_t exec, std::vector<int> want) {
    for (int round = 0; round < 3; round++) {
        std::vector<int> got(4);
        HIP_CHECK(hipMemset(values, 0, sizeof(int) * 4));
        HIP_CHECK(hipGraphLaunch(exec, nullptr));
        HIP_CHECK(hipMemcpy(got.data(), values, sizeof(int) * 4, hipMemcpyDeviceToHost));
        check::equal(what, got, want);
    }
}

static hipGraphExec_t instance(hipGraph_t graph) {
    hipGraphExec_t exec = nullptr;
    HIP_CHECK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    return exec;
}

static void other_parameters() {
    hipGraph_t graph = create(), first = two_nodes(0, 1, 2), second = two_nodes(2, 3, 4);
    hipGraphNode_t one = add_child(graph, nullptr, first), two = add_child(graph, one, second), empty = add_empty(graph);
    hipGraphExec_t exec = instance(graph);
    leaves("as instantiated", exec, {1, 2, 3, 4});

    hipGraph_t other = create();
    hipGraphNode_t changed = add_put(other, add_fill(other, 2, 30), 3, 40);
    HIP_CHECK(hipGraphExecChildGraphNodeSetParams(exec, two, other));
    Put later(3, 41, put);
    HIP_CHECK(hipGraphKernelNodeSetParams(changed, &later.params));
    leaves("one child changed", exec, {1, 2, 30, 40});
    HIP_CHECK(hipGraphExecChildGraphNodeSetParams(exec, two, other));
    HIP_CHECK(hipGraphDestroy(other));
    leaves("changed again", exec, {1, 2, 30, 41});
    other = two_nodes(0, 10, 20, put_more);
    HIP_CHECK(hipGraphExecChildGraphNodeSetParams(exec, one, other));
    leaves("another kernel", exec, {10, 1020, 30, 41});

    // The child graph that the node has.
    hipGraph_t own = nullptr;
    HIP_CHECK(hipGraphChildGraphNodeGetGraph(one, &own));
    HIP_CHECK(hipGraphExecChildGraphNodeSetParams(exec, one, own));
    leaves("the node's own graph", exec, {1, 2, 30, 41});
    hipGraphExec_t fresh = instance(graph);
    leaves("the graph is as it was", fresh, {1, 2, 3, 4});

    EXPECT_ERROR(hipGraphExecChildGraphNodeSetParams(nullptr, one, other), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphExecChildGraphNodeSetParams(exec, nullptr, other), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphExecChildGraphNodeSetParams(exec, one, nullptr), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphExecChildGraphNodeSetParams(exec, empty, other), hipErrorInvalidValue);
    hipGraph_t stranger = create();
    hipGraphNode_t elsewhere = add_child(stranger, nullptr, first);
    EXPECT_ERROR(hipGraphExecChildGraphNodeSetParams(exec, elsewhere, other), hipErrorInvalidValue);

    // Other shapes.
    hipGraph_t none = create(), less = create(), more = two_nodes(0, 5, 6), types = create();
    add_fill(less, 0, 5);
    add_put(more, nullptr, 0, 7);
    add_put(types, add_put(types, nullptr, 0, 5), 1, 6);
    for (hipGraph_t wrong : {none, less, more, types, graph})
        EXPECT_ERROR(hipGraphExecChildGraphNodeSetParams(exec, one, wrong), hipErrorUnknown);
    hipGraph_t circle = create();
    hipGraphNode_t fill = add_fill(circle, 0, 5), kernel = add_put(circle, fill, 1, 6);
    HIP_CHECK(hipGraphAddDependencies(circle, &kernel, &fill, 1));
    EXPECT_ERROR(hipGraphExecChildGraphNodeSetParams(exec, one, circle), hipErrorUnknown);
    leaves("after what was refused", exec, {1, 2, 30, 41});

    HIP_CHECK(hipGraphExecDestroy(exec));
    HIP_CHECK(hipGraphExecDestroy(fresh));
    for (hipGraph_t each : {graph, first, second, other, stranger, none, less, more, types, circle}) HIP_CHECK(hipGraphDestroy(each));
}

// AMD's runtime looks neither at edges nor into child graphs of the child graph.
static void shapes_inside() {
    hipGraph_t child = two_nodes(0, 1, 2), middle = create(), outer = create();
    hipGraphNode_t leaf = add_child(middle, nullptr, child), node = add_child(outer, nullptr, middle);
    hipGraphExec_t exec = instance(outer);
    hipGraph_t inner = two_nodes(0, 11, 12), other = create();
    add_child(other, nullptr, inner);
    HIP_CHECK(hipGraphExecChildGraphNodeSetParams(exec, node, other));
    leaves("a child of a child", exec, {11, 12, 0, 0});
    hipGraph_t wrong = create(), less = create();
    add_fill(less, 0, 5);
    add_child(wrong, nullptr, less);
    EXPECT_ERROR(hipGraphExecChildGraphNodeSetParams(exec, node, wrong), hipErrorUnknown);
    EXPECT_ERROR(hipGraphExecChildGraphNodeSetParams(exec, leaf, child), hipErrorInvalidValue); // a copy of it is in the graph
    HIP_CHECK(hipGraphExecDestroy(exec));
    exec = instance(middle);
    hipGraph_t loose = create();
    add_fill(loose, 0, 5);
    add_put(loose, nullptr, 1, 6);
    EXPECT_ERROR(hipGraphExecChildGraphNodeSetParams(exec, leaf, loose), hipErrorUnknown);
    leaves("as it was", exec, {1, 2, 0, 0});
    HIP_CHECK(hipGraphExecDestroy(exec));
    for (hipGraph_t each : {child, middle, outer, inner, other, wrong, less, loose}) HIP_CHECK(hipGraphDestroy(each));
}

int main() {
    check::begin("graph_children");
    HIP_CHECK(hipMalloc(&values, sizeof(int) * 4));
    other_parameters();
    if (check::amds_release() == 0) shapes_inside();
    HIP_CHECK(hipFree(values));
    return check::finish();
}
