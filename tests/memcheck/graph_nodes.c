// Nodes that do something: kernels, copies, fills, host functions, events.
#include "graph.h"

void make_saxpy(struct Setup* s, struct Saxpy* saxpy, float a) {
    memset(saxpy, 0, sizeof *saxpy);
    saxpy->a = a;
    saxpy->x = s->device;
    saxpy->y = s->device + 1024;
    saxpy->n = SAXPY_N;
    saxpy->args[0] = &saxpy->a;
    saxpy->args[1] = &saxpy->x;
    saxpy->args[2] = &saxpy->y;
    saxpy->args[3] = &saxpy->n;
    saxpy->params.func = s->saxpy;
    saxpy->params.gridDim = (dim3){1, 1, 1};
    saxpy->params.blockDim = (dim3){SAXPY_N, 1, 1};
    saxpy->params.kernelParams = saxpy->args;
}

void start_saxpy(struct Setup* s, float x) {
    float all[SAXPY_N];
    for (int i = 0; i < SAXPY_N; i++) all[i] = x;
    GOOD(hipMemcpy(s->device, all, sizeof all, hipMemcpyHostToDevice));
    GOOD(hipMemset(s->device + 1024, 0, sizeof all));
    GOOD(hipDeviceSynchronize());
}

float saxpy_result(struct Setup* s) {
    float last = -1;
    GOOD(hipMemcpy(&last, s->device + 1024 + (SAXPY_N - 1) * sizeof last, sizeof last, hipMemcpyDeviceToHost));
    return last;
}

// Parameters that no function takes which takes those of a kernel node.
#define REFUSES_KERNELS(call, size_error)                                                                               \
    do {                                                                                                               \
        hipKernelNodeParams p_ = saxpy.params;                                                                         \
        void *none_[4] = {NULL, NULL, NULL, NULL}, *no_size_[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &saxpy.a, HIP_LAUNCH_PARAM_END}; \
        const hipKernelNodeParams* bad = NULL;                                                                         \
        FAILS(call, hipErrorInvalidValue);                                                                             \
        bad = &p_;                                                                                                     \
        p_.func = NULL;                                                                                                \
        FAILS(call, hipErrorInvalidValue);                                                                             \
        p_.func = NOWHERE;                                                                                             \
        FAILS(call, hipErrorInvalidDeviceFunction);                                                                    \
        p_ = saxpy.params;                                                                                             \
        p_.gridDim.y = 0;                                                                                              \
        FAILS(call, size_error);                                                                                       \
        p_ = saxpy.params;                                                                                             \
        p_.blockDim.x = 4096;                                                                                          \
        FAILS(call, size_error);                                                                                       \
        p_ = saxpy.params;                                                                                             \
        p_.sharedMemBytes = 0xffffffff;                                                                                \
        FAILS(call, hipErrorInvalidValue);                                                                             \
        p_ = saxpy.params;                                                                                             \
        p_.kernelParams = none_;                                                                                       \
        FAILS(call, hipErrorInvalidValue);                                                                             \
        p_.extra = no_size_;                                                                                           \
        FAILS(call, hipErrorInvalidValue);                                                                             \
        p_.kernelParams = NULL;                                                                                        \
        FAILS(call, hipErrorInvalidValue);                                                                             \
        p_.extra = NULL;                                                                                               \
        FAILS(call, hipErrorInvalidValue);                                                                             \
    } while (0)

void kernel_nodes(struct Setup* s) {
    struct Saxpy saxpy;
    hipGraph_t graph = NULL;
    hipGraphNode_t node = NULL, after = NULL, empty = NULL;
    hipGraphExec_t exec = NULL;
    hipGraphNodeType type;
    make_saxpy(s, &saxpy, 3);
    start_saxpy(s, 2);
    GOOD(hipGraphCreate(&graph, 0));
    REFUSES_PLACES(hipGraphAddKernelNode, graph, &saxpy.params);
    REFUSES_KERNELS(hipGraphAddKernelNode(&node, graph, NULL, 0, bad), hipErrorInvalidConfiguration);
    THAT(node == NULL);
    GOOD(hipGraphAddKernelNode(&node, graph, NULL, 0, &saxpy.params));
    GOOD(hipGraphNodeGetType(node, &type));
    THAT(type == hipGraphNodeTypeKernel);
    // By the stub's address, with all arguments in one buffer.
    struct {
        float a;
        unsigned pad;
        void *x, *y;
        unsigned n, end;
    } buffer = {10, 0, saxpy.x, saxpy.y, SAXPY_N, 0};
    size_t len = sizeof buffer;
    void* extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &buffer, HIP_LAUNCH_PARAM_BUFFER_SIZE, &len, HIP_LAUNCH_PARAM_END};
    hipKernelNodeParams packed = saxpy.params;
    packed.func = (void*)&saxpy_stub;
    packed.kernelParams = NULL;
    packed.extra = extra;
    GOOD(hipGraphAddKernelNode(&after, graph, &node, 1, &packed));
    // The arguments were read.
    saxpy.a = buffer.a = 1000;
    GOOD(hipGraphAddEmptyNode(&empty, graph, NULL, 0));
    GOOD(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    run_graph(s, exec);
    THAT(saxpy_result(s) == 26);

    // What was given is given back, in memory of the node's.
    hipKernelNodeParams given;
    GOOD(hipGraphKernelNodeGetParams(node, &given));
    THAT(given.func == s->saxpy && given.extra == NULL && given.kernelParams != saxpy.args);
    THAT(given.gridDim.x == 1 && given.blockDim.x == SAXPY_N && given.blockDim.z == 1 && given.sharedMemBytes == 0);
    THAT(*(float*)given.kernelParams[0] == 3 && *(void**)given.kernelParams[1] == saxpy.x && *(unsigned*)given.kernelParams[3] == SAXPY_N);
    float seven = 7;
    given.kernelParams[0] = &seven;
    GOOD(hipGraphKernelNodeSetParams(node, &given));
    GOOD(hipGraphKernelNodeGetParams(node, &given));
    THAT(*(float*)given.kernelParams[0] == 7 && given.kernelParams[0] != &seven);
    GOOD(hipGraphKernelNodeGetParams(after, &given));
    THAT(given.func == (void*)&saxpy_stub && given.kernelParams == NULL && given.extra[0] == HIP_LAUNCH_PARAM_BUFFER_POINTER);
    THAT(*(float*)given.extra[1] == 10 && *(size_t*)given.extra[3] == sizeof buffer && given.extra[4] == HIP_LAUNCH_PARAM_END);
    GOOD(hipGraphKernelNodeSetParams(after, &given));
    start_saxpy(s, 2);
    run_once(s, graph);
    THAT(saxpy_result(s) == 34);
    FAILS(hipGraphKernelNodeGetParams(node, NULL), hipErrorInvalidValue);
    FAILS(hipGraphKernelNodeGetParams(NULL, &given), hipErrorInvalidValue);
    FAILS(hipGraphKernelNodeGetParams(NO_NODE, &given), hipErrorInvalidValue);
    FAILS(hipGraphKernelNodeGetParams(empty, &given), hipErrorInvalidValue);

    saxpy.a = 1;
    REFUSES_KERNELS(hipGraphKernelNodeSetParams(node, bad), hipErrorInvalidConfiguration);
    FAILS(hipGraphKernelNodeSetParams(NULL, &saxpy.params), hipErrorInvalidValue);
    FAILS(hipGraphKernelNodeSetParams(NO_NODE, &saxpy.params), hipErrorInvalidValue);
    FAILS(hipGraphKernelNodeSetParams(empty, &saxpy.params), hipErrorInvalidValue);
    GOOD(hipGraphKernelNodeSetParams(node, &saxpy.params));
    // What is ready stays as it is.
    start_saxpy(s, 2);
    run_graph(s, exec);
    THAT(saxpy_result(s) == 26);
    start_saxpy(s, 2);
    run_once(s, graph);
    THAT(saxpy_result(s) == 22);
    saxpy.a = 5;
    REFUSES_KERNELS(hipGraphExecKernelNodeSetParams(exec, node, bad), hipErrorInvalidValue);
    FAILS(hipGraphExecKernelNodeSetParams(NULL, node, &saxpy.params), hipErrorInvalidValue);
    FAILS(hipGraphExecKernelNodeSetParams(NO_EXEC, node, &saxpy.params), hipErrorInvalidValue);
    FAILS(hipGraphExecKernelNodeSetParams(exec, NO_NODE, &saxpy.params), hipErrorInvalidValue);
    FAILS(hipGraphExecKernelNodeSetParams(exec, empty, &saxpy.params), hipErrorInvalidValue);
    GOOD(hipGraphExecKernelNodeSetParams(exec, node, &saxpy.params));
    start_saxpy(s, 2);
    run_graph(s, exec);
    THAT(saxpy_result(s) == 30);
    GOOD(hipGraphExecDestroy(exec));
    GOOD(hipGraphDestroy(graph));
}

void node_attributes(struct Setup* s) {
    struct Saxpy saxpy;
    hipGraph_t graph = NULL;
    hipGraphNode_t node = NULL, other = NULL, plain = NULL, empty = NULL;
    // A value has this much room in programs of HIP 6.
    hipAccessPolicyWindow window = {.base_ptr = s->device, .hitRatio = 0.5f}, found;
    int cooperative = 1, got;
    hipLaunchAttributeID of_window = hipLaunchAttributeAccessPolicyWindow, of_cooperative = hipLaunchAttributeCooperative;
    make_saxpy(s, &saxpy, 3);
    start_saxpy(s, 2);
    GOOD(hipGraphCreate(&graph, 0));
    GOOD(hipGraphAddKernelNode(&node, graph, NULL, 0, &saxpy.params));
    GOOD(hipGraphAddKernelNode(&other, graph, &node, 1, &saxpy.params));
    GOOD(hipGraphAddKernelNode(&plain, graph, &other, 1, &saxpy.params));
    GOOD(hipGraphAddEmptyNode(&empty, graph, NULL, 0));
    memset(&found, 0x55, sizeof found);
    GOOD(hipGraphKernelNodeGetAttribute(node, of_window, (void*)&found));
    THAT(found.base_ptr == NULL && found.num_bytes == 0 && found.hitRatio == 0 && found.hitProp == 0 && found.missProp == 0);
    GOOD(hipGraphKernelNodeGetAttribute(node, hipLaunchAttributePriority, (void*)&got));
    THAT(got == 0);
    GOOD(hipGraphKernelNodeSetAttribute(node, of_window, (void*)&window));
    GOOD(hipGraphKernelNodeGetAttribute(node, of_window, (void*)&found));
    THAT(found.base_ptr == s->device && found.hitRatio == 0.5f);
    window.num_bytes = SIZE_MAX;
    FAILS(hipGraphKernelNodeSetAttribute(node, of_window, (void*)&window), hipErrorInvalidValue);
    GOOD(hipGraphKernelNodeSetAttribute(other, of_cooperative, (void*)&cooperative));
    GOOD(hipGraphKernelNodeGetAttribute(other, of_cooperative, (void*)&got));
    THAT(got == 1);
    FAILS(hipGraphKernelNodeGetAttribute(other, of_window, (void*)&found), hipErrorInvalidValue);
    FAILS(hipGraphKernelNodeGetAttribute(other, of_cooperative, NULL), hipErrorInvalidValue);
    FAILS(hipGraphKernelNodeGetAttribute(NULL, of_cooperative, (void*)&got), hipErrorInvalidValue);
    FAILS(hipGraphKernelNodeGetAttribute(NO_NODE, of_cooperative, (void*)&got), hipErrorInvalidValue);
    FAILS(hipGraphKernelNodeGetAttribute(empty, of_cooperative, (void*)&got), hipErrorInvalidValue);
    FAILS(hipGraphKernelNodeSetAttribute(other, (hipLaunchAttributeID)99, (void*)&got), hipErrorInvalidValue);
    FAILS(hipGraphKernelNodeSetAttribute(other, of_window, NULL), hipErrorInvalidValue);
    FAILS(hipGraphKernelNodeSetAttribute(other, of_cooperative, NULL), hipErrorInvalidValue);
    FAILS(hipGraphKernelNodeSetAttribute(NO_NODE, of_cooperative, (void*)&cooperative), hipErrorInvalidValue);
    FAILS(hipGraphKernelNodeSetAttribute(empty, of_cooperative, (void*)&cooperative), hipErrorInvalidValue);
    FAILS(hipGraphKernelNodeCopyAttributes(node, other), hipErrorInvalidContext);
    FAILS(hipGraphKernelNodeCopyAttributes(plain, other), hipErrorInvalidContext);
    FAILS(hipGraphKernelNodeCopyAttributes(NULL, other), hipErrorInvalidValue);
    FAILS(hipGraphKernelNodeCopyAttributes(other, NO_NODE), hipErrorInvalidValue);
    FAILS(hipGraphKernelNodeCopyAttributes(empty, plain), hipErrorInvalidValue);
    FAILS(hipGraphKernelNodeCopyAttributes(other, empty), hipErrorInvalidValue);
    GOOD(hipGraphKernelNodeCopyAttributes(other, plain));
    GOOD(hipGraphKernelNodeGetAttribute(plain, of_cooperative, (void*)&got));
    THAT(got == 1);
    run_once(s, graph);
    THAT(saxpy_result(s) == 18);
    GOOD(hipGraphDestroy(graph));
}

// As 8 rows of 16 bytes, 32 bytes from row to row at the source.
static hipMemcpy3DParms box_copy(void* dst, void* src, enum hipMemcpyKind kind) {
    hipMemcpy3DParms box;
    memset(&box, 0, sizeof box);
    box.srcPtr = (hipPitchedPtr){src, 32, 32, 8};
    box.dstPtr = (hipPitchedPtr){dst, 16, 16, 8};
    box.extent = (hipExtent){16, 8, 1};
    box.kind = kind;
    return box;
}

// Parameters that no function takes which takes those of a copy of a box.
#define REFUSES_BOXES(call, direction, too_narrow)                                                                     \
    do {                                                                                                               \
        hipMemcpy3DParms p_ = box_copy(s->device, s->host, hipMemcpyHostToDevice), *bad = NULL;                        \
        FAILS(call, hipErrorInvalidValue);                                                                             \
        bad = &p_;                                                                                                     \
        p_.kind = (hipMemcpyKind)99;                                                                                   \
        FAILS(call, direction);                                                                                        \
        p_ = box_copy(NULL, s->host, hipMemcpyHostToDevice);                                                           \
        FAILS(call, hipErrorInvalidValue);                                                                             \
        p_ = box_copy(s->device, NULL, hipMemcpyHostToDevice);                                                         \
        FAILS(call, hipErrorInvalidValue);                                                                             \
        p_ = box_copy(NOWHERE, s->host, hipMemcpyHostToDevice);                                                        \
        FAILS(call, hipErrorInvalidValue);                                                                             \
        p_ = box_copy(s->device + DEVICE_BYTES - 64, s->host, hipMemcpyHostToDevice);                                  \
        FAILS(call, hipErrorInvalidValue);                                                                             \
        p_ = box_copy(s->device, s->host, hipMemcpyHostToDevice);                                                      \
        p_.srcPtr.pitch = 15;                                                                                          \
        FAILS(call, too_narrow);                                                                                       \
        p_ = box_copy(s->device, s->host, hipMemcpyHostToDevice);                                                      \
        p_.extent = (hipExtent){SIZE_MAX, SIZE_MAX, SIZE_MAX};                                                         \
        FAILS(call, hipErrorInvalidValue);                                                                             \
    } while (0)

// The same for bytes in one row.
#define REFUSES_ROWS(set, direction)                                                                                   \
    do {                                                                                                               \
        FAILS(set(s->device, s->host, 64, (hipMemcpyKind)99), direction);                                              \
        FAILS(set(NULL, s->host, 64, hipMemcpyHostToDevice), hipErrorInvalidValue);                                    \
        FAILS(set(s->device, NULL, 64, hipMemcpyHostToDevice), hipErrorInvalidValue);                                  \
        FAILS(set(NOWHERE, s->host, 64, hipMemcpyHostToDevice), hipErrorInvalidValue);                                 \
        FAILS(set(s->device, s->host, DEVICE_BYTES + 1, hipMemcpyHostToDevice), hipErrorInvalidValue);                 \
        FAILS(set(s->device, s->host, SIZE_MAX, hipMemcpyHostToDevice), hipErrorInvalidValue);                         \
    } while (0)

static void driver_copies(struct Setup* s, hipGraph_t graph) {
    char back[128];
    hipGraphNode_t node = NULL;
    HIP_MEMCPY3D copy, bad;
    memset(&copy, 0, sizeof copy);
    memset(back, 0x55, sizeof back);
    copy.srcMemoryType = hipMemoryTypeDevice;
    copy.srcDevice = s->device;
    copy.srcXInBytes = 16;
    copy.dstMemoryType = hipMemoryTypeHost;
    copy.dstHost = back;
    copy.WidthInBytes = copy.srcPitch = copy.dstPitch = 16;
    copy.Height = copy.Depth = 2;
    hipCtx_t context = NULL;
    FAILS(hipDrvGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, NULL), hipErrorInvalidValue);
    GOOD(hipCtxGetCurrent(&context));
    REFUSES_PLACES(hipDrvGraphAddMemcpyNode, graph, &copy, context);
    FAILS(hipDrvGraphAddMemcpyNode(&node, graph, NULL, 0, NULL, context), hipErrorInvalidValue);
    bad = copy;
    bad.dstHost = NULL;
    FAILS(hipDrvGraphAddMemcpyNode(&node, graph, NULL, 0, &bad, context), hipErrorInvalidValue);
    bad = copy;
    bad.srcDevice = NOWHERE;
    FAILS(hipDrvGraphAddMemcpyNode(&node, graph, NULL, 0, &bad, context), hipErrorInvalidValue);
    bad.srcMemoryType = (hipMemoryType)99;
    BAD(hipDrvGraphAddMemcpyNode(&node, graph, NULL, 0, &bad, context));
    bad = copy;
    bad.srcPitch = 8;
    FAILS(hipDrvGraphAddMemcpyNode(&node, graph, NULL, 0, &bad, context), hipErrorInvalidValue);
    THAT(node == NULL);
    GOOD(hipDrvGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, context));
    GOOD(hipMemcpy(s->device, s->host, 128, hipMemcpyHostToDevice));
    run_once(s, graph);
    THAT(!memcmp(back, s->host + 16, 64) && back[64] == 0x55);
    GOOD(hipGraphDestroyNode(node));
}

void copy_nodes(struct Setup* s) {
    char back[128];
    hipGraph_t graph = NULL;
    hipGraphNode_t up = NULL, down = NULL, empty = NULL;
    hipGraphExec_t exec = NULL;
    hipGraphNodeType type;
    hipMemcpy3DParms box = box_copy(s->device, s->host, hipMemcpyHostToDevice);
    GOOD(hipGraphCreate(&graph, 0));
    GOOD(hipGraphAddEmptyNode(&empty, graph, NULL, 0));
    REFUSES_PLACES(hipGraphAddMemcpyNode, graph, &box);
    REFUSES_BOXES(hipGraphAddMemcpyNode(&up, graph, NULL, 0, bad), hipErrorInvalidMemcpyDirection, hipErrorInvalidPitchValue);
    GOOD(hipGraphAddMemcpyNode(&up, graph, NULL, 0, &box));
    REFUSES_PLACES(hipGraphAddMemcpyNode1D, graph, back, s->device, sizeof back, hipMemcpyDeviceToHost);
#define ADD(...) hipGraphAddMemcpyNode1D(&down, graph, NULL, 0, __VA_ARGS__)
    REFUSES_ROWS(ADD, hipErrorInvalidMemcpyDirection);
#undef ADD
    GOOD(hipGraphAddMemcpyNode1D(&down, graph, &up, 1, back, s->device, sizeof back, hipMemcpyDeviceToHost));
    GOOD(hipGraphNodeGetType(down, &type));
    THAT(type == hipGraphNodeTypeMemcpy);
    GOOD(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    run_graph(s, exec);
    for (int y = 0; y < 8; y++) THAT(!memcmp(back + 16 * y, s->host + 32 * y, 16));

    // Others for the graph.
    box.srcPtr.ptr = s->host + 1;
    REFUSES_BOXES(hipGraphMemcpyNodeSetParams(up, bad), hipErrorInvalidMemcpyDirection, hipErrorInvalidPitchValue);
    FAILS(hipGraphMemcpyNodeSetParams(empty, &box), hipErrorInvalidValue);
    FAILS(hipGraphMemcpyNodeSetParams(NO_NODE, &box), hipErrorInvalidValue);
    GOOD(hipGraphMemcpyNodeSetParams(up, &box));
#define SET(...) hipGraphMemcpyNodeSetParams1D(down, __VA_ARGS__)
    REFUSES_ROWS(SET, hipErrorInvalidMemcpyDirection);
#undef SET
    FAILS(hipGraphMemcpyNodeSetParams1D(NULL, back, s->device, 16, hipMemcpyDeviceToHost), hipErrorInvalidValue);
    FAILS(hipGraphMemcpyNodeSetParams1D(empty, back, s->device, 16, hipMemcpyDeviceToHost), hipErrorInvalidValue);
    GOOD(hipGraphMemcpyNodeSetParams1D(down, back, s->device, 16, hipMemcpyDeviceToHost));
    run_once(s, graph);
    THAT(!memcmp(back, s->host + 1, 16) && !memcmp(back + 16, s->host + 32, 16));

    // Others for what is ready.
    box.srcPtr.ptr = s->host + 2;
    REFUSES_BOXES(hipGraphExecMemcpyNodeSetParams(exec, up, bad), hipErrorInvalidValue, hipErrorInvalidValue);
    FAILS(hipGraphExecMemcpyNodeSetParams(NO_EXEC, up, &box), hipErrorInvalidValue);
    FAILS(hipGraphExecMemcpyNodeSetParams(exec, empty, &box), hipErrorInvalidValue);
    GOOD(hipGraphExecMemcpyNodeSetParams(exec, up, &box));
#define SET(...) hipGraphExecMemcpyNodeSetParams1D(exec, down, __VA_ARGS__)
    REFUSES_ROWS(SET, hipErrorInvalidValue);
#undef SET
    FAILS(hipGraphExecMemcpyNodeSetParams1D(NULL, down, back, s->device, 32, hipMemcpyDeviceToHost), hipErrorInvalidValue);
    FAILS(hipGraphExecMemcpyNodeSetParams1D(exec, NULL, back, s->device, 32, hipMemcpyDeviceToHost), hipErrorInvalidValue);
    GOOD(hipGraphExecMemcpyNodeSetParams1D(exec, down, back, s->device, 32, hipMemcpyDeviceToHost));
    run_graph(s, exec);
    THAT(!memcmp(back, s->host + 2, 16) && !memcmp(back + 16, s->host + 34, 16) && !memcmp(back + 32, s->host + 64, 16));
    GOOD(hipGraphExecDestroy(exec));
    GOOD(hipGraphDestroyNode(up));
    GOOD(hipGraphDestroyNode(down));
    driver_copies(s, graph);
    GOOD(hipGraphDestroy(graph));
}

// Parameters that no function takes which takes those of a fill.
#define REFUSES_FILLS(call)                                                                                            \
    do {                                                                                                               \
        hipMemsetParams p_ = fill;                                                                                     \
        const hipMemsetParams* bad = NULL;                                                                             \
        FAILS(call, hipErrorInvalidValue);                                                                             \
        bad = &p_;                                                                                                     \
        p_.dst = NULL;                                                                                                 \
        FAILS(call, hipErrorInvalidValue);                                                                             \
        p_.dst = NOWHERE;                                                                                              \
        FAILS(call, hipErrorInvalidValue);                                                                             \
        p_ = fill;                                                                                                     \
        p_.elementSize = 3;                                                                                            \
        FAILS(call, hipErrorInvalidValue);                                                                             \
        p_ = fill;                                                                                                     \
        p_.width = 0;                                                                                                  \
        FAILS(call, hipErrorInvalidValue);                                                                             \
        p_.width = SIZE_MAX;                                                                                           \
        FAILS(call, hipErrorInvalidValue);                                                                             \
        p_ = fill;                                                                                                     \
        p_.height = 0;                                                                                                 \
        FAILS(call, hipErrorInvalidValue);                                                                             \
        p_.height = SIZE_MAX;                                                                                          \
        FAILS(call, hipErrorInvalidValue);                                                                             \
        p_ = fill;                                                                                                     \
        p_.elementSize = p_.height = 4;                                                                                \
        p_.pitch = 11;                                                                                                 \
        FAILS(call, hipErrorInvalidValue);                                                                             \
        p_.pitch = DEVICE_BYTES;                                                                                       \
        FAILS(call, hipErrorInvalidValue);                                                                             \
    } while (0)

static void fill_nodes(struct Setup* s, hipGraph_t graph, hipGraphNode_t empty) {
    hipMemsetParams fill = {.dst = s->device, .elementSize = 4, .height = 4, .pitch = 16, .value = 0x01020304, .width = 3};
    unsigned back[16];
    hipGraphNode_t node = NULL;
    hipGraphExec_t exec = NULL;
    REFUSES_PLACES(hipGraphAddMemsetNode, graph, &fill);
    REFUSES_FILLS(hipGraphAddMemsetNode(&node, graph, NULL, 0, bad));
    THAT(node == NULL);
    GOOD(hipGraphAddMemsetNode(&node, graph, NULL, 0, &fill));
    GOOD(hipGraphInstantiateWithFlags(&exec, graph, hipGraphInstantiateFlagAutoFreeOnLaunch));
    GOOD(hipMemset(s->device, 0, sizeof back));
    run_graph(s, exec);
    GOOD(hipMemcpy(back, s->device, sizeof back, hipMemcpyDeviceToHost));
    for (int i = 0; i < 16; i++) THAT(back[i] == (i % 4 < 3 ? 0x01020304u : 0));
    fill.elementSize = 2;
    fill.height = 1;
    REFUSES_FILLS(hipGraphMemsetNodeSetParams(node, bad));
    FAILS(hipGraphMemsetNodeSetParams(empty, &fill), hipErrorInvalidValue);
    FAILS(hipGraphMemsetNodeSetParams(NULL, &fill), hipErrorInvalidValue);
    GOOD(hipGraphMemsetNodeSetParams(node, &fill));
    run_once(s, graph);
    GOOD(hipMemcpy(back, s->device, 8, hipMemcpyDeviceToHost));
    THAT(back[0] == 0x03040304 && back[1] == 0x01020304);
    fill.elementSize = 1;
    REFUSES_FILLS(hipGraphExecMemsetNodeSetParams(exec, node, bad));
    FAILS(hipGraphExecMemsetNodeSetParams(NULL, node, &fill), hipErrorInvalidValue);
    FAILS(hipGraphExecMemsetNodeSetParams(exec, empty, &fill), hipErrorInvalidValue);
    GOOD(hipGraphExecMemsetNodeSetParams(exec, node, &fill));
    run_graph(s, exec);
    GOOD(hipMemcpy(back, s->device, 8, hipMemcpyDeviceToHost));
    THAT(back[0] == 0x03040404);
    GOOD(hipGraphExecDestroy(exec));
    GOOD(hipGraphDestroyNode(node));
}

static void add_ten(void* data) { *(int*)data += 10; }

static void host_nodes(struct Setup* s, hipGraph_t graph, hipGraphNode_t empty) {
    int calls = 0;
    hipHostNodeParams function = {add_one, &calls}, none = {NULL, &calls};
    hipGraphNode_t node = NULL;
    hipGraphExec_t exec = NULL;
    hipGraphNodeType type;
    REFUSES_PLACES(hipGraphAddHostNode, graph, &function);
    FAILS(hipGraphAddHostNode(&node, graph, NULL, 0, NULL), hipErrorInvalidValue);
    FAILS(hipGraphAddHostNode(&node, graph, NULL, 0, &none), hipErrorInvalidValue);
    GOOD(hipGraphAddHostNode(&node, graph, NULL, 0, &function));
    GOOD(hipGraphNodeGetType(node, &type));
    THAT(type == hipGraphNodeTypeHost);
    GOOD(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    run_graph(s, exec);
    THAT(calls == 1);
    function.fn = add_ten;
    FAILS(hipGraphHostNodeSetParams(node, NULL), hipErrorInvalidValue);
    FAILS(hipGraphHostNodeSetParams(node, &none), hipErrorInvalidValue);
    FAILS(hipGraphHostNodeSetParams(empty, &function), hipErrorInvalidValue);
    GOOD(hipGraphHostNodeSetParams(node, &function));
    run_once(s, graph);
    THAT(calls == 11);
    FAILS(hipGraphExecHostNodeSetParams(exec, node, NULL), hipErrorInvalidValue);
    FAILS(hipGraphExecHostNodeSetParams(exec, node, &none), hipErrorInvalidValue);
    FAILS(hipGraphExecHostNodeSetParams(NO_EXEC, node, &function), hipErrorInvalidValue);
    FAILS(hipGraphExecHostNodeSetParams(exec, empty, &function), hipErrorInvalidValue);
    GOOD(hipGraphExecHostNodeSetParams(exec, node, &function));
    run_graph(s, exec);
    THAT(calls == 21);
    GOOD(hipGraphExecDestroy(exec));
    GOOD(hipGraphDestroyNode(node));
}

static void event_nodes(struct Setup* s, hipGraph_t graph, hipGraphNode_t empty) {
    hipEvent_t first = NULL, second = NULL, found = NULL, dead = (hipEvent_t)NOWHERE;
    hipGraphNode_t record = NULL, wait = NULL;
    hipGraphExec_t exec = NULL;
    float ms;
    GOOD(hipEventCreate(&first));
    GOOD(hipEventCreate(&second));
    REFUSES_PLACES(hipGraphAddEventRecordNode, graph, first);
    REFUSES_PLACES(hipGraphAddEventWaitNode, graph, first);
    FAILS(hipGraphAddEventRecordNode(&record, graph, NULL, 0, NULL), hipErrorInvalidValue);
    FAILS(hipGraphAddEventRecordNode(&record, graph, NULL, 0, dead), hipErrorInvalidValue);
    FAILS(hipGraphAddEventWaitNode(&wait, graph, NULL, 0, NULL), hipErrorInvalidValue);
    FAILS(hipGraphAddEventWaitNode(&wait, graph, NULL, 0, dead), hipErrorInvalidValue);
    GOOD(hipGraphAddEventRecordNode(&record, graph, NULL, 0, first));
    GOOD(hipGraphAddEventWaitNode(&wait, graph, &record, 1, first));
    GOOD(hipGraphEventRecordNodeGetEvent(record, &found));
    THAT(found == first);
    FAILS(hipGraphEventRecordNodeGetEvent(record, NULL), hipErrorInvalidValue);
    FAILS(hipGraphEventRecordNodeGetEvent(empty, &found), hipErrorInvalidValue);
    FAILS(hipGraphEventRecordNodeGetEvent(wait, &found), hipErrorInvalidValue);
    FAILS(hipGraphEventRecordNodeSetEvent(record, dead), hipErrorInvalidValue);
    FAILS(hipGraphEventRecordNodeSetEvent(wait, second), hipErrorInvalidValue);
    FAILS(hipGraphEventRecordNodeSetEvent(NULL, second), hipErrorInvalidValue);
    GOOD(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    GOOD(hipGraphEventRecordNodeSetEvent(record, second));
    GOOD(hipGraphEventRecordNodeGetEvent(record, &found));
    THAT(found == second);
    FAILS(hipGraphEventWaitNodeGetEvent(wait, NULL), hipErrorInvalidValue);
    FAILS(hipGraphEventWaitNodeGetEvent(record, &found), hipErrorInvalidValue);
    FAILS(hipGraphEventWaitNodeSetEvent(wait, NULL), hipErrorInvalidValue);
    FAILS(hipGraphEventWaitNodeSetEvent(record, second), hipErrorInvalidValue);
    GOOD(hipGraphEventWaitNodeSetEvent(wait, second));
    GOOD(hipGraphEventWaitNodeGetEvent(wait, &found));
    THAT(found == second);
    // Neither was recorded before a launch did it.
    FAILS(hipEventElapsedTime(&ms, first, second), hipErrorInvalidHandle);
    run_graph(s, exec);
    run_once(s, graph);
    GOOD(hipEventElapsedTime(&ms, first, second));
    THAT(ms >= 0);
    FAILS(hipGraphExecEventRecordNodeSetEvent(exec, record, dead), hipErrorInvalidValue);
    FAILS(hipGraphExecEventRecordNodeSetEvent(exec, wait, second), hipErrorInvalidValue);
    FAILS(hipGraphExecEventRecordNodeSetEvent(NO_EXEC, record, second), hipErrorInvalidValue);
    GOOD(hipGraphExecEventRecordNodeSetEvent(exec, record, second));
    FAILS(hipGraphExecEventWaitNodeSetEvent(exec, wait, NULL), hipErrorInvalidValue);
    FAILS(hipGraphExecEventWaitNodeSetEvent(exec, empty, second), hipErrorInvalidValue);
    FAILS(hipGraphExecEventWaitNodeSetEvent(NULL, wait, second), hipErrorInvalidValue);
    GOOD(hipGraphExecEventWaitNodeSetEvent(exec, wait, second));
    // What is ready does not need the first event any more.
    GOOD(hipEventDestroy(first));
    run_graph(s, exec);
    GOOD(hipGraphExecDestroy(exec));
    GOOD(hipGraphDestroyNode(wait));
    GOOD(hipGraphDestroyNode(record));
    GOOD(hipEventDestroy(second));
}

// Parameters are given back as they were given, by the functions of their kind and by the one of all kinds.
static void params_of_nodes(struct Setup* s, hipGraph_t graph, hipGraphNode_t empty) {
    struct Saxpy saxpy;
    make_saxpy(s, &saxpy, 2);
    int calls = 0;
    hipEvent_t event = NULL;
    hipGraph_t child = NULL;
    GOOD(hipEventCreate(&event));
    GOOD(hipGraphCreate(&child, 0));
    hipGraphNodeParams all[8];
    memset(all, 0, sizeof all);
    for (int i = 0; i < 8; i++) all[i].type = (hipGraphNodeType)i;
    all[hipGraphNodeTypeKernel].kernel = saxpy.params;
    all[hipGraphNodeTypeMemcpy].memcpy.copyParams.srcPtr = make_hipPitchedPtr(s->device, 16, 16, 4);
    all[hipGraphNodeTypeMemcpy].memcpy.copyParams.dstPtr = make_hipPitchedPtr(s->device + 1024, 32, 16, 4);
    all[hipGraphNodeTypeMemcpy].memcpy.copyParams.extent = make_hipExtent(16, 4, 1);
    all[hipGraphNodeTypeMemcpy].memcpy.copyParams.kind = hipMemcpyDeviceToDevice;
    all[hipGraphNodeTypeMemset].memset = (hipMemsetParams){.dst = s->device, .elementSize = 2, .height = 3, .pitch = 64, .value = 0x1234, .width = 5};
    all[hipGraphNodeTypeHost].host = (hipHostNodeParams){.fn = add_one, .userData = &calls};
    all[hipGraphNodeTypeGraph].graph.graph = child;
    all[hipGraphNodeTypeWaitEvent].eventWait.event = event;
    all[hipGraphNodeTypeEventRecord].eventRecord.event = event;
    hipGraphNode_t nodes[8] = {NULL}, none = NULL;
    for (int i = 0; i < 8; i++) {
        hipGraphNodeType type = hipGraphNodeTypeCount;
        GOOD(hipGraphAddNode(&nodes[i], graph, &empty, 1, &all[i]));
        GOOD(hipGraphNodeGetType(nodes[i], &type));
        THAT(type == all[i].type);
        REFUSES_PLACES(hipGraphAddNode, graph, &all[i]);
    }
    FAILS(hipGraphAddNode(&none, graph, NULL, 0, NULL), hipErrorInvalidValue);
    hipGraphNodeParams unknown = {.type = (hipGraphNodeType)99};
    FAILS(hipGraphAddNode(&none, graph, NULL, 0, &unknown), hipErrorInvalidValue);
    unknown.type = hipGraphNodeTypeMemFree;
    FAILS(hipGraphAddNode(&none, graph, NULL, 0, &unknown), hipErrorInvalidValue);
    unknown.type = hipGraphNodeTypeExtSemaphoreSignal;
    FAILS(hipGraphAddNode(&none, graph, NULL, 0, &unknown), hipErrorNotSupported);
    THAT(none == NULL);

    hipMemcpy3DParms copy;
    GOOD(hipGraphMemcpyNodeGetParams(nodes[hipGraphNodeTypeMemcpy], &copy));
    THAT(copy.srcPtr.ptr == s->device && copy.srcPtr.pitch == 16 && copy.srcPtr.ysize == 4 && copy.srcArray == NULL);
    THAT(copy.dstPtr.ptr == s->device + 1024 && copy.dstPtr.pitch == 32 && copy.dstPos.x == 0 && copy.dstArray == NULL);
    THAT(copy.extent.width == 16 && copy.extent.height == 4 && copy.extent.depth == 1 && copy.kind == hipMemcpyDeviceToDevice);
    GOOD(hipGraphMemcpyNodeSetParams(nodes[hipGraphNodeTypeMemcpy], &copy));
    FAILS(hipGraphMemcpyNodeGetParams(nodes[hipGraphNodeTypeMemcpy], NULL), hipErrorInvalidValue);
    FAILS(hipGraphMemcpyNodeGetParams(empty, &copy), hipErrorInvalidValue);
    FAILS(hipGraphMemcpyNodeGetParams(NO_NODE, &copy), hipErrorInvalidValue);
    hipMemsetParams fill;
    GOOD(hipGraphMemsetNodeGetParams(nodes[hipGraphNodeTypeMemset], &fill));
    THAT(fill.dst == s->device && fill.elementSize == 2 && fill.height == 3 && fill.pitch == 64 && fill.value == 0x1234 && fill.width == 5);
    FAILS(hipGraphMemsetNodeGetParams(nodes[hipGraphNodeTypeMemset], NULL), hipErrorInvalidValue);
    FAILS(hipGraphMemsetNodeGetParams(nodes[hipGraphNodeTypeMemcpy], &fill), hipErrorInvalidValue);
    hipHostNodeParams host;
    GOOD(hipGraphHostNodeGetParams(nodes[hipGraphNodeTypeHost], &host));
    THAT(host.fn == add_one && host.userData == &calls);
    FAILS(hipGraphHostNodeGetParams(nodes[hipGraphNodeTypeHost], NULL), hipErrorInvalidValue);
    FAILS(hipGraphHostNodeGetParams(NULL, &host), hipErrorInvalidValue);

    for (int i = 0; i < 8; i++) GOOD(hipGraphDestroyNode(nodes[i]));
    GOOD(hipGraphDestroy(child));
    GOOD(hipEventDestroy(event));
    THAT(calls == 0);
}

void other_nodes(struct Setup* s) {
    hipGraph_t graph = NULL;
    hipGraphNode_t empty = NULL;
    GOOD(hipGraphCreate(&graph, 0));
    GOOD(hipGraphAddEmptyNode(&empty, graph, NULL, 0));
    fill_nodes(s, graph, empty);
    host_nodes(s, graph, empty);
    event_nodes(s, graph, empty);
    params_of_nodes(s, graph, empty);
    GOOD(hipGraphDestroy(graph));
}
