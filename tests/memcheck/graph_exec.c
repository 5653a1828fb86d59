// Graphs made ready: launched, switched, updated, destroyed, and launched without what they need.
#include "graph.h"

// Bytes up, a fill, a kernel, a function, bytes down.
struct Work {
    float input[SAXPY_N], output[SAXPY_N];
    int calls;
    hipGraph_t graph;
    hipGraphNode_t up, fill, kernel, function, down;
};

static void make_work(struct Setup* s, struct Work* w) {
    struct Saxpy saxpy;
    memset(w, 0, sizeof *w);
    make_saxpy(s, &saxpy, 2);
    hipMemsetParams zero = {.dst = saxpy.y, .elementSize = 4, .height = 1, .width = SAXPY_N};
    hipHostNodeParams function = {add_one, &w->calls};
    GOOD(hipGraphCreate(&w->graph, 0));
    GOOD(hipGraphAddMemcpyNode1D(&w->up, w->graph, NULL, 0, saxpy.x, w->input, sizeof w->input, hipMemcpyHostToDevice));
    GOOD(hipGraphAddMemsetNode(&w->fill, w->graph, NULL, 0, &zero));
    hipGraphNode_t before[] = {w->up, w->fill};
    GOOD(hipGraphAddKernelNode(&w->kernel, w->graph, before, 2, &saxpy.params));
    GOOD(hipGraphAddHostNode(&w->function, w->graph, &w->kernel, 1, &function));
    GOOD(hipGraphAddMemcpyNode1D(&w->down, w->graph, &w->function, 1, w->output, saxpy.y, sizeof w->output, hipMemcpyDeviceToHost));
}

// Launches until it is known that later launches, of which the worker knows, do what the first did.
static void check_work(struct Setup* s, struct Work* w, hipGraphExec_t exec) {
    for (int round = 0; round < 4; round++) {
        int calls = w->calls;
        for (int i = 0; i < SAXPY_N; i++) w->input[i] = (float)(i + round);
        run_graph(s, exec);
        THAT(w->calls == calls + 1);
        THAT(w->output[0] == (float)(2 * round) && w->output[63] == (float)(2 * (63 + round)));
    }
}

static void makings(struct Work* w) {
    hipGraphExec_t exec = NULL, none = NULL;
    hipGraphNode_t error_node = NO_NODE;
    char text[4] = "abc";
    GOOD(hipGraphInstantiate(&exec, w->graph, &error_node, text, sizeof text));
    THAT(error_node == NO_NODE && text[0] == 'a');
    GOOD(hipGraphExecDestroy(exec));
    FAILS(hipGraphExecDestroy(exec), hipErrorInvalidValue);
    FAILS(hipGraphExecDestroy(NULL), hipErrorInvalidValue);
    FAILS(hipGraphInstantiate(NULL, w->graph, NULL, NULL, 0), hipErrorInvalidValue);
    FAILS(hipGraphInstantiate(&none, NULL, NULL, NULL, 0), hipErrorInvalidValue);
    FAILS(hipGraphInstantiate(&none, NO_GRAPH, NULL, text, 0), hipErrorInvalidValue);
    GOOD(hipGraphInstantiateWithFlags(&exec, w->graph, hipGraphInstantiateFlagUseNodePriority));
    GOOD(hipGraphExecDestroy(exec));
    FAILS(hipGraphInstantiateWithFlags(NULL, w->graph, 0), hipErrorInvalidValue);
    FAILS(hipGraphInstantiateWithFlags(&none, NO_GRAPH, 0), hipErrorInvalidValue);
    FAILS(hipGraphInstantiateWithFlags(&none, w->graph, 0x100), hipErrorInvalidValue);
    FAILS(hipGraphInstantiateWithFlags(&none, w->graph, hipGraphInstantiateFlagDeviceLaunch), hipErrorInvalidValue);
    hipGraphInstantiateParams params;
    memset(&params, 0x77, sizeof params);
    params.flags = hipGraphInstantiateFlagUpload;
    params.uploadStream = NULL;
    GOOD(hipGraphInstantiateWithParams(&exec, w->graph, &params));
    THAT(params.result_out == hipGraphInstantiateSuccess && params.errNode_out == NULL);
    GOOD(hipGraphExecDestroy(exec));
    FAILS(hipGraphInstantiateWithParams(&none, w->graph, NULL), hipErrorInvalidValue);
    FAILS(hipGraphInstantiateWithParams(NULL, w->graph, &params), hipErrorInvalidValue);
    FAILS(hipGraphInstantiateWithParams(&none, NO_GRAPH, &params), hipErrorInvalidValue);
    THAT(params.result_out == hipGraphInstantiateError);
    params.uploadStream = (hipStream_t)NOWHERE;
    FAILS(hipGraphInstantiateWithParams(&none, w->graph, &params), hipErrorContextIsDestroyed);
    params.flags = 0x100;
    FAILS(hipGraphInstantiateWithParams(&none, w->graph, &params), hipErrorInvalidValue);
    THAT(params.result_out == hipGraphInstantiateError && none == NULL);
}

static void launching(struct Setup* s, struct Work* w, hipGraphExec_t exec) {
    hipStream_t wrong = (hipStream_t)NOWHERE;
    FAILS(hipGraphLaunch(NULL, s->stream), hipErrorInvalidValue);
    FAILS(hipGraphLaunch(NO_EXEC, s->stream), hipErrorInvalidValue);
    FAILS(hipGraphLaunch(exec, wrong), hipErrorContextIsDestroyed);
    w->output[5] = -1;
    GOOD(hipGraphLaunch_spt(exec, NULL));
    GOOD(hipStreamSynchronize_spt(NULL));
    THAT(w->output[5] == 2 * w->input[5]);
    FAILS(hipGraphLaunch_spt(NULL, NULL), hipErrorInvalidValue);
    FAILS(hipGraphLaunch_spt(exec, wrong), hipErrorContextIsDestroyed);
    GOOD(hipGraphUpload(exec, s->stream));
    FAILS(hipGraphUpload(NULL, s->stream), hipErrorInvalidValue);
    FAILS(hipGraphUpload(NO_EXEC, s->stream), hipErrorInvalidValue);
    FAILS(hipGraphUpload(exec, wrong), hipErrorContextIsDestroyed);
}

static void switching(struct Setup* s, struct Work* w, hipGraphExec_t exec) {
    unsigned enabled = 7;
    GOOD(hipGraphNodeGetEnabled(exec, w->fill, &enabled));
    THAT(enabled == 1);
    GOOD(hipGraphNodeSetEnabled(exec, w->fill, 0));
    GOOD(hipGraphNodeGetEnabled(exec, w->fill, &enabled));
    THAT(enabled == 0);
    // Without the fill each launch adds to what the one before left.
    for (int i = 0; i < SAXPY_N; i++) w->input[i] = 1;
    GOOD(hipMemset(s->device + 1024, 0, sizeof w->output));
    GOOD(hipDeviceSynchronize());
    for (int round = 1; round <= 4; round++) {
        run_graph(s, exec);
        THAT(w->output[63] == 2 * (float)round);
    }
    FAILS(hipGraphNodeGetEnabled(exec, w->fill, NULL), hipErrorInvalidValue);
    FAILS(hipGraphNodeGetEnabled(exec, NO_NODE, &enabled), hipErrorInvalidValue);
    FAILS(hipGraphNodeGetEnabled(NO_EXEC, w->fill, &enabled), hipErrorInvalidValue);
    FAILS(hipGraphNodeSetEnabled(exec, NO_NODE, 0), hipErrorInvalidValue);
    FAILS(hipGraphNodeSetEnabled(NULL, w->fill, 0), hipErrorInvalidValue);
    GOOD(hipGraphNodeSetEnabled(exec, w->fill, 1));
    check_work(s, w, exec);
}

static void children(struct Setup* s, struct Work* w) {
    struct Saxpy saxpy;
    hipGraph_t outer = NULL, other = NULL;
    hipGraphNode_t node = NULL, empty = NULL, kernel = NULL, stranger = node_of_no_graph();
    hipGraphExec_t exec = NULL;
    GOOD(hipGraphCreate(&outer, 0));
    GOOD(hipGraphAddEmptyNode(&empty, outer, NULL, 0));
    GOOD(hipGraphAddChildGraphNode(&node, outer, &empty, 1, w->graph));
    GOOD(hipGraphInstantiate(&exec, outer, NULL, NULL, 0));
    check_work(s, w, exec);
    make_saxpy(s, &saxpy, 1);
    GOOD(hipGraphClone(&other, w->graph));
    GOOD(hipGraphNodeFindInClone(&kernel, w->kernel, other));
    GOOD(hipGraphKernelNodeSetParams(kernel, &saxpy.params));
    GOOD(hipGraphExecChildGraphNodeSetParams(exec, node, other));
    for (int round = 0; round < 3; round++) {
        w->input[7] = (float)round;
        run_graph(s, exec);
        THAT(w->output[7] == (float)round);
    }
    FAILS(hipGraphExecChildGraphNodeSetParams(NULL, node, other), hipErrorInvalidValue);
    FAILS(hipGraphExecChildGraphNodeSetParams(NO_EXEC, node, other), hipErrorInvalidValue);
    FAILS(hipGraphExecChildGraphNodeSetParams(exec, NULL, other), hipErrorInvalidValue);
    FAILS(hipGraphExecChildGraphNodeSetParams(exec, stranger, other), hipErrorInvalidValue);
    FAILS(hipGraphExecChildGraphNodeSetParams(exec, empty, other), hipErrorInvalidValue);
    FAILS(hipGraphExecChildGraphNodeSetParams(exec, node, NULL), hipErrorInvalidValue);
    FAILS(hipGraphExecChildGraphNodeSetParams(exec, node, NO_GRAPH), hipErrorInvalidValue);
    FAILS(hipGraphExecChildGraphNodeSetParams(exec, node, outer), hipErrorUnknown);
    GOOD(hipGraphDestroyNode(kernel));
    FAILS(hipGraphExecChildGraphNodeSetParams(exec, node, other), hipErrorUnknown);
    GOOD(hipGraphDestroy(other));
    GOOD(hipGraphExecChildGraphNodeSetParams(exec, node, w->graph));
    check_work(s, w, exec);
    GOOD(hipGraphExecDestroy(exec));
    GOOD(hipGraphDestroy(outer));
}

static void updating(struct Setup* s, struct Work* w, hipGraphExec_t exec) {
    struct Saxpy saxpy;
    hipGraph_t other = NULL;
    hipGraphNode_t kernel = NULL, error_node = NO_NODE;
    hipGraphExecUpdateResult result = hipGraphExecUpdateError;
    make_saxpy(s, &saxpy, 1);
    GOOD(hipGraphClone(&other, w->graph));
    GOOD(hipGraphNodeFindInClone(&kernel, w->kernel, other));
    GOOD(hipGraphKernelNodeSetParams(kernel, &saxpy.params));
    GOOD(hipGraphExecUpdate(exec, other, &error_node, &result));
    THAT(result == hipGraphExecUpdateSuccess && error_node == NULL);
    for (int i = 0; i < SAXPY_N; i++) w->input[i] = (float)i;
    for (int round = 0; round < 3; round++) {
        run_graph(s, exec);
        THAT(w->output[7] == 7);
    }
    FAILS(hipGraphExecUpdate(NULL, other, &error_node, &result), hipErrorInvalidValue);
    FAILS(hipGraphExecUpdate(NO_EXEC, other, &error_node, &result), hipErrorInvalidValue);
    FAILS(hipGraphExecUpdate(exec, NULL, &error_node, &result), hipErrorInvalidValue);
    FAILS(hipGraphExecUpdate(exec, NO_GRAPH, &error_node, &result), hipErrorInvalidValue);
    FAILS(hipGraphExecUpdate(exec, other, &error_node, NULL), hipErrorInvalidValue);
    // A node less, another kind of node, a circle.
    GOOD(hipGraphDestroyNode(kernel));
    FAILS(hipGraphExecUpdate(exec, other, &error_node, &result), hipErrorGraphExecUpdateFailure);
    THAT(result == hipGraphExecUpdateErrorTopologyChanged);
    hipGraph_t kinds = NULL;
    hipGraphNode_t node = NULL, before = NULL;
    GOOD(hipGraphCreate(&kinds, 0));
    GOOD(hipGraphAddEmptyNode(&before, kinds, NULL, 0));
    hipGraphExec_t two = NULL;
    GOOD(hipGraphAddEmptyNode(&node, kinds, &before, 1));
    GOOD(hipGraphInstantiate(&two, kinds, NULL, NULL, 0));
    GOOD(hipGraphDestroyNode(node));
    GOOD(hipGraphAddKernelNode(&node, kinds, &before, 1, &saxpy.params));
    FAILS(hipGraphExecUpdate(two, kinds, &error_node, &result), hipErrorGraphExecUpdateFailure);
    THAT(result == hipGraphExecUpdateErrorNodeTypeChanged && error_node == node);
    GOOD(hipGraphAddDependencies(kinds, &node, &before, 1));
    FAILS(hipGraphExecUpdate(two, kinds, NULL, &result), hipErrorInvalidValue);
    FAILS(hipGraphExecUpdate(two, kinds, &error_node, &result), hipErrorGraphExecUpdateFailure);
    THAT(result == hipGraphExecUpdateError);
    GOOD(hipGraphExecDestroy(two));
    GOOD(hipGraphDestroy(kinds));
    GOOD(hipGraphDestroy(other));
    GOOD(hipGraphExecUpdate(exec, w->graph, &error_node, &result));
}

// Memory that the host and the kernels share, which the program changes between launches.
static void shared_memory(struct Setup* s) {
    struct Saxpy saxpy;
    hipGraph_t graph = NULL;
    hipGraphNode_t node = NULL;
    hipGraphExec_t exec = NULL;
    float *pinned = NULL, *managed = NULL;
    GOOD(hipHostMalloc((void**)&pinned, SAXPY_N * sizeof *pinned, hipHostMallocMapped));
    GOOD(hipMallocManaged((void**)&managed, SAXPY_N * sizeof *managed, hipMemAttachGlobal));
    make_saxpy(s, &saxpy, 3);
    saxpy.x = (char*)pinned;
    saxpy.y = (char*)managed;
    GOOD(hipGraphCreate(&graph, 0));
    GOOD(hipGraphAddKernelNode(&node, graph, NULL, 0, &saxpy.params));
    GOOD(hipGraphAddKernelNode(&node, graph, &node, 1, &saxpy.params));
    GOOD(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < SAXPY_N; i++) {
            pinned[i] = (float)(i + round);
            managed[i] = 1;
        }
        run_graph(s, exec);
        THAT(managed[0] == (float)(1 + 6 * round) && managed[63] == (float)(1 + 6 * (63 + round)));
    }
    GOOD(hipHostFree(pinned));
    BAD(hipGraphLaunch(exec, s->stream));
    GOOD(hipGraphExecDestroy(exec));
    GOOD(hipGraphDestroy(graph));
    GOOD(hipFree(managed));
}

void ready_graphs(struct Setup* s) {
    static struct Work w;
    hipGraphExec_t exec = NULL;
    make_work(s, &w);
    makings(&w);
    GOOD(hipGraphInstantiate(&exec, w.graph, NULL, NULL, 0));
    check_work(s, &w, exec);
    launching(s, &w, exec);
    switching(s, &w, exec);
    children(s, &w);
    updating(s, &w, exec);
    // What is ready lives without the graph.
    GOOD(hipGraphDestroy(w.graph));
    check_work(s, &w, exec);
    GOOD(hipGraphLaunch(exec, s->stream));
    GOOD(hipGraphExecDestroy(exec));
    FAILS(hipGraphLaunch(exec, s->stream), hipErrorInvalidValue);
    FAILS(hipGraphUpload(exec, s->stream), hipErrorInvalidValue);
    GOOD(hipStreamSynchronize(s->stream));
    shared_memory(s);
}

// Launched before and after: by itself and, once the worker has it, by the worker.
static void loses(struct Setup* s, hipGraph_t graph, int launches_before, void (*lose)(void*), void* data) {
    hipGraphExec_t exec = NULL;
    GOOD(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    for (int i = 0; i < launches_before; i++) run_graph(s, exec);
    lose(data);
    for (int i = 0; i < 3; i++) BAD(hipGraphLaunch(exec, s->stream));
    GOOD(hipGraphExecDestroy(exec));
    GOOD(hipDeviceSynchronize());
}

static void lose_memory(void* memory) { GOOD(hipFree(memory)); }
static void lose_module(void* module) { GOOD(hipModuleUnload(module)); }
static void lose_event(void* event) { GOOD(hipEventDestroy(event)); }

void lost_by_graphs(struct Setup* s) {
    for (int launches = 0; launches < 3; launches++) {
        hipGraph_t graph = NULL;
        hipGraphNode_t node = NULL;
        void* memory = NULL;
        GOOD(hipMalloc(&memory, 256));
        hipMemsetParams fill = {.dst = memory, .elementSize = 1, .height = 1, .value = 1, .width = 256};
        GOOD(hipGraphCreate(&graph, 0));
        GOOD(hipGraphAddMemsetNode(&node, graph, NULL, 0, &fill));
        GOOD(hipGraphAddMemcpyNode1D(&node, graph, &node, 1, s->device, memory, 256, hipMemcpyDeviceToDevice));
        GOOD(hipGraphAddMemsetNode(&node, graph, &node, 1, &fill));
        loses(s, graph, launches, lose_memory, memory);
        GOOD(hipGraphDestroy(graph));

        struct Saxpy saxpy;
        hipModule_t module = NULL;
        hipFunction_t function = NULL;
        make_saxpy(s, &saxpy, 1);
        GOOD(hipModuleLoadData(&module, s->kernels));
        GOOD(hipModuleGetFunction(&function, module, "saxpy"));
        saxpy.params.func = function;
        GOOD(hipGraphCreate(&graph, 0));
        GOOD(hipGraphAddKernelNode(&node, graph, NULL, 0, &saxpy.params));
        GOOD(hipGraphAddKernelNode(&node, graph, &node, 1, &saxpy.params));
        loses(s, graph, launches, lose_module, module);
        FAILS(hipGraphAddKernelNode(&node, graph, NULL, 0, &saxpy.params), hipErrorInvalidDeviceFunction);
        GOOD(hipGraphDestroy(graph));

        hipEvent_t event = NULL;
        GOOD(hipEventCreate(&event));
        GOOD(hipGraphCreate(&graph, 0));
        GOOD(hipGraphAddEventRecordNode(&node, graph, NULL, 0, event));
        GOOD(hipGraphAddEventWaitNode(&node, graph, &node, 1, event));
        loses(s, graph, launches, lose_event, event);
        GOOD(hipGraphDestroy(graph));
    }
}
