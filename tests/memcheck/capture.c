// Captures of streams: what they record, what they are told, which streams join, what spoils them, and other threads.
#include <pthread.h>

#include "graph.h"

static hipStreamCaptureStatus status_of(hipStream_t stream) {
    hipStreamCaptureStatus status = (hipStreamCaptureStatus)77;
    GOOD(hipStreamIsCapturing(stream, &status));
    return status;
}

static void begin(hipStream_t stream) { GOOD(hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed)); }

// Ends a capture of which nothing is wanted.
static void drop_capture(hipStream_t stream) {
    hipGraph_t graph = NULL;
    GOOD(hipStreamEndCapture(stream, &graph));
    GOOD(hipGraphDestroy(graph));
}

// Ends a capture that gives no graph.
#define NO_GRAPH_FROM(stream, error)                                                                                   \
    do {                                                                                                               \
        hipGraph_t graph_ = NO_GRAPH;                                                                                  \
        FAILS(hipStreamEndCapture(stream, &graph_), error);                                                            \
        THAT(graph_ == NULL && status_of(stream) == hipStreamCaptureStatusNone);                                       \
    } while (0)

static void infos(struct Setup* s) {
    hipStreamCaptureStatus status = hipStreamCaptureStatusActive;
    unsigned long long id = 99, other_id = 99;
    hipGraph_t graph = NULL;
    const hipGraphNode_t* nodes = NULL;
    size_t count = 99;
    hipStream_t st = s->stream, wrong = (hipStream_t)NOWHERE;
    GOOD(hipStreamGetCaptureInfo_v2(st, &status, &id, &graph, &nodes, &count));
    THAT(status == hipStreamCaptureStatusNone && id == 99 && graph == NULL && nodes == NULL);
    begin(st);
    GOOD(hipStreamGetCaptureInfo_v2(st, &status, &id, &graph, &nodes, &count));
    THAT(status == hipStreamCaptureStatusActive && id != 0 && graph != NULL && count == 0);
    GOOD(hipMemsetAsync(s->device, 1, 64, st));
    GOOD(hipStreamGetCaptureInfo_v2(st, &status, NULL, NULL, &nodes, &count));
    THAT(count == 1 && nodes[0] != NULL);
    GOOD(hipStreamGetCaptureInfo_v2(st, &status, NULL, NULL, NULL, NULL));
    FAILS(hipStreamGetCaptureInfo_v2(st, NULL, &id, &graph, &nodes, &count), hipErrorInvalidValue);
    FAILS(hipStreamGetCaptureInfo_v2(wrong, &status, &id, &graph, &nodes, &count), hipErrorContextIsDestroyed);
    GOOD(hipStreamGetCaptureInfo(st, &status, &other_id));
    THAT(other_id == id);
    drop_capture(st);
    begin(st);
    GOOD(hipStreamGetCaptureInfo(st, &status, &other_id));
    THAT(other_id != id);
    // The legacy null stream would wait for this one.
    FAILS(hipStreamIsCapturing(NULL, &status), hipErrorStreamCaptureImplicit);
    FAILS(hipStreamGetCaptureInfo(NULL, &status, &id), hipErrorStreamCaptureImplicit);
    FAILS(hipStreamGetCaptureInfo_v2(hipStreamLegacy, &status, &id, NULL, NULL, NULL), hipErrorStreamCaptureImplicit);
    GOOD(hipMemsetAsync(s->device, 1, 64, NULL));
    GOOD(hipStreamIsCapturing(hipStreamPerThread, &status));
    drop_capture(st);
}

static void dependencies(struct Setup* s) {
    hipStreamCaptureStatus status;
    hipGraph_t graph = NULL;
    const hipGraphNode_t* nodes = NULL;
    size_t count = 0;
    hipStream_t st = s->stream;
    hipGraphNode_t mine[2] = {NULL, NULL}, stranger = node_of_no_graph();
    FAILS(hipStreamUpdateCaptureDependencies(st, NULL, 0, hipStreamSetCaptureDependencies), hipErrorIllegalState);
    begin(st);
    GOOD(hipMemsetAsync(s->device, 1, 64, st));
    GOOD(hipStreamGetCaptureInfo_v2(st, &status, NULL, &graph, &nodes, &count));
    mine[0] = nodes[0];
    GOOD(hipGraphAddEmptyNode(&mine[1], graph, NULL, 0));
    GOOD(hipStreamUpdateCaptureDependencies(st, &mine[1], 1, hipStreamAddCaptureDependencies));
    GOOD(hipStreamGetCaptureInfo_v2(st, &status, NULL, NULL, &nodes, &count));
    THAT(count == 2 && nodes[0] == mine[0] && nodes[1] == mine[1]);
    GOOD(hipStreamUpdateCaptureDependencies(st, &mine[1], 1, hipStreamSetCaptureDependencies));
    GOOD(hipStreamGetCaptureInfo_v2(st, &status, NULL, NULL, &nodes, &count));
    THAT(count == 1 && nodes[0] == mine[1]);
    FAILS(hipStreamUpdateCaptureDependencies(st, mine, 1, 2), hipErrorInvalidValue);
    FAILS(hipStreamUpdateCaptureDependencies(st, NULL, 1, 0), hipErrorInvalidValue);
    FAILS(hipStreamUpdateCaptureDependencies(st, &stranger, 1, 0), hipErrorInvalidValue);
    FAILS(hipStreamUpdateCaptureDependencies(st, mine, 1000000, 0), hipErrorInvalidValue);
    FAILS(hipStreamUpdateCaptureDependencies(st, mine, SIZE_MAX, 1), hipErrorInvalidValue);
    FAILS(hipStreamUpdateCaptureDependencies((hipStream_t)NOWHERE, mine, 1, 0), hipErrorContextIsDestroyed);
    GOOD(hipStreamUpdateCaptureDependencies(st, mine, 2, hipStreamSetCaptureDependencies));
    GOOD(hipStreamEndCapture(st, &graph));
    run_once(s, graph);
    GOOD(hipGraphDestroy(graph));
}

void captures(struct Setup* s) {
    hipStream_t st = s->stream, wrong = (hipStream_t)NOWHERE;
    hipGraph_t graph = NULL;
    FAILS(hipStreamBeginCapture(NULL, hipStreamCaptureModeGlobal), hipErrorStreamCaptureUnsupported);
    FAILS(hipStreamBeginCapture(st, (hipStreamCaptureMode)9), hipErrorInvalidValue);
    FAILS(hipStreamBeginCapture(wrong, hipStreamCaptureModeGlobal), hipErrorContextIsDestroyed);
    FAILS(hipStreamEndCapture(st, &graph), hipErrorIllegalState);
    FAILS(hipStreamEndCapture(wrong, &graph), hipErrorContextIsDestroyed);
    GOOD(hipStreamBeginCapture(st, hipStreamCaptureModeThreadLocal));
    THAT(status_of(st) == hipStreamCaptureStatusActive);
    FAILS(hipStreamBeginCapture(st, hipStreamCaptureModeRelaxed), hipErrorIllegalState);
    FAILS(hipStreamEndCapture(st, NULL), hipErrorInvalidValue);
    THAT(status_of(st) == hipStreamCaptureStatusActive);
    drop_capture(st);
    infos(s);
    dependencies(s);
}

static void callback(hipStream_t stream, hipError_t status, void* data) {
    (void)stream;
    *(int*)data += status == hipSuccess;
}

// Into a graph that has a node already.
static void into_graphs(struct Setup* s) {
    hipStream_t st = s->stream;
    hipGraph_t graph = NULL, same = NULL;
    hipGraphNode_t first = NULL, stranger = node_of_no_graph();
    const hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
    size_t count = 0;
    GOOD(hipGraphCreate(&graph, 0));
    GOOD(hipGraphAddEmptyNode(&first, graph, NULL, 0));
    FAILS(hipStreamBeginCaptureToGraph(NULL, graph, NULL, NULL, 0, mode), hipErrorStreamCaptureUnsupported);
    FAILS(hipStreamBeginCaptureToGraph((hipStream_t)NOWHERE, graph, NULL, NULL, 0, mode), hipErrorContextIsDestroyed);
    FAILS(hipStreamBeginCaptureToGraph(st, NULL, NULL, NULL, 0, mode), hipErrorInvalidValue);
    FAILS(hipStreamBeginCaptureToGraph(st, NO_GRAPH, NULL, NULL, 0, mode), hipErrorInvalidValue);
    FAILS(hipStreamBeginCaptureToGraph(st, graph, NULL, NULL, 1, mode), hipErrorInvalidValue);
    FAILS(hipStreamBeginCaptureToGraph(st, graph, &stranger, NULL, 1, mode), hipErrorInvalidValue);
    FAILS(hipStreamBeginCaptureToGraph(st, graph, &first, NULL, 1000000, mode), hipErrorInvalidValue);
    FAILS(hipStreamBeginCaptureToGraph(st, graph, &first, NULL, 1, (hipStreamCaptureMode)9), hipErrorInvalidValue);
    THAT(status_of(st) == hipStreamCaptureStatusNone);
    GOOD(hipStreamBeginCaptureToGraph(st, graph, &first, NULL, 1, mode));
    GOOD(hipMemsetAsync(s->device, 9, 64, st));
    GOOD(hipStreamEndCapture(st, &same));
    THAT(same == graph);
    GOOD(hipGraphNodeGetDependentNodes(first, NULL, &count));
    THAT(count == 1);
    // A graph that was given stays, even if its capture is spoilt.
    GOOD(hipStreamBeginCaptureToGraph(st, graph, NULL, NULL, 0, mode));
    FAILS(hipStreamSynchronize(st), hipErrorStreamCaptureUnsupported);
    NO_GRAPH_FROM(st, hipErrorStreamCaptureInvalidated);
    run_once(s, graph);
    GOOD(hipGraphDestroy(graph));
}

void captured_graphs(struct Setup* s) {
    struct Saxpy saxpy;
    float input[SAXPY_N], output[SAXPY_N];
    int calls = 0;
    hipStream_t st = s->stream;
    hipGraph_t graph = NULL;
    hipGraphExec_t exec = NULL, inner = NULL;
    size_t count = 0;
    make_saxpy(s, &saxpy, 4);
    memset(output, 0, sizeof output);
    for (int i = 0; i < SAXPY_N; i++) input[i] = (float)i;
    begin(st);
    GOOD(hipMemcpyAsync(saxpy.x, input, sizeof input, hipMemcpyHostToDevice, st));
    GOOD(hipMemsetD32Async(saxpy.y, 0, SAXPY_N, st));
    GOOD(hipModuleLaunchKernel(s->saxpy, 1, 1, 1, SAXPY_N, 1, 1, 0, st, saxpy.args, NULL));
    GOOD(hipLaunchKernel(&saxpy_stub, (dim3){1, 1, 1}, (dim3){SAXPY_N, 1, 1}, saxpy.args, 0, st));
    GOOD(hipLaunchHostFunc(st, add_one, &calls));
    GOOD(hipMemcpy2DAsync(output, 16, saxpy.y, 16, 16, sizeof output / 16, hipMemcpyDeviceToHost, st));
    // What is wrong is refused as it would be by a stream that works, and is not in the graph.
    FAILS(hipMemcpyAsync(NULL, input, 16, hipMemcpyHostToDevice, st), hipErrorInvalidValue);
    FAILS(hipMemcpyAsync(saxpy.x, NULL, 16, hipMemcpyHostToDevice, st), hipErrorInvalidValue);
    FAILS(hipMemcpyAsync(saxpy.x, input, 16, (hipMemcpyKind)99, st), hipErrorInvalidMemcpyDirection);
    FAILS(hipMemcpy2DAsync(saxpy.x, 8, input, 16, 16, 2, hipMemcpyHostToDevice, st), hipErrorInvalidPitchValue);
    FAILS(hipMemsetAsync(NULL, 0, 16, st), hipErrorInvalidValue);
    FAILS(hipMemset2DAsync(saxpy.x, 8, 0, 16, 2, st), hipErrorInvalidValue);
    FAILS(hipLaunchHostFunc(st, NULL, &calls), hipErrorInvalidValue);
    BAD(hipModuleLaunchKernel(NULL, 1, 1, 1, SAXPY_N, 1, 1, 0, st, saxpy.args, NULL));
    THAT(status_of(st) == hipStreamCaptureStatusActive);
    GOOD(hipStreamEndCapture(st, &graph));
    THAT(calls == 0 && output[1] == 0);
    GOOD(hipGraphGetNodes(graph, NULL, &count));
    THAT(count == 6);
    GOOD(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    saxpy.a = 1000;
    for (int round = 1; round <= 4; round++) {
        input[63] = (float)round;
        run_graph(s, exec);
        THAT(calls == round && output[0] == 0 && output[62] == 8 * 62 && output[63] == (float)(8 * round));
    }
    // A graph that is launched into a capture becomes part of it.
    begin(st);
    GOOD(hipGraphLaunch(exec, st));
    hipGraph_t outer = NULL;
    GOOD(hipStreamEndCapture(st, &outer));
    GOOD(hipGraphExecDestroy(exec));
    GOOD(hipGraphInstantiate(&inner, outer, NULL, NULL, 0));
    run_graph(s, inner);
    THAT(calls == 5);
    GOOD(hipGraphExecDestroy(inner));
    GOOD(hipGraphDestroy(outer));
    GOOD(hipGraphDestroy(graph));
    into_graphs(s);
}

void joined_captures(struct Setup* s) {
    hipStream_t a = s->stream, b = NULL, c = NULL;
    hipEvent_t fork = NULL, join = NULL;
    hipGraph_t graph = NULL;
    size_t count = 0;
    GOOD(hipStreamCreate(&b));
    GOOD(hipStreamCreateWithFlags(&c, hipStreamNonBlocking));
    GOOD(hipEventCreate(&fork));
    GOOD(hipEventCreate(&join));
    begin(a);
    GOOD(hipMemsetAsync(s->device, 1, 64, a));
    GOOD(hipEventRecord(fork, a));
    GOOD(hipStreamWaitEvent(b, fork, 0));
    THAT(status_of(b) == hipStreamCaptureStatusActive);
    GOOD(hipMemsetAsync(s->device + 64, 2, 64, b));
    GOOD(hipEventRecord(join, b));
    FAILS(hipStreamEndCapture(b, &graph), hipErrorStreamCaptureUnmatched);
    GOOD(hipStreamWaitEvent(a, join, 0));
    GOOD(hipMemsetAsync(s->device + 128, 3, 64, a));
    GOOD(hipStreamEndCapture(a, &graph));
    THAT(status_of(b) == hipStreamCaptureStatusNone);
    GOOD(hipGraphGetEdges(graph, NULL, NULL, &count));
    THAT(count == 3);
    run_once(s, graph);
    GOOD(hipGraphDestroy(graph));

    // Not waited for.
    begin(a);
    GOOD(hipEventRecord(fork, a));
    GOOD(hipStreamWaitEvent(b, fork, 0));
    GOOD(hipMemsetAsync(s->device, 2, 64, b));
    NO_GRAPH_FROM(a, hipErrorStreamCaptureUnjoined);
    // Two captures cannot become one.
    begin(a);
    begin(c);
    GOOD(hipEventRecord(fork, a));
    FAILS(hipStreamWaitEvent(c, fork, 0), hipErrorStreamCaptureMerge);
    NO_GRAPH_FROM(a, hipErrorStreamCaptureInvalidated);
    NO_GRAPH_FROM(c, hipErrorStreamCaptureInvalidated);
    // A capture knows nothing of work outside, and goes on.
    GOOD(hipEventRecord(join, b));
    begin(a);
    GOOD(hipStreamWaitEvent(a, join, 0));
    THAT(status_of(a) == hipStreamCaptureStatusActive);
    GOOD(hipMemsetAsync(s->device, 1, 64, a));
    GOOD(hipStreamEndCapture(a, &graph));
    GOOD(hipGraphGetNodes(graph, NULL, &count));
    THAT(count == 1);
    GOOD(hipGraphDestroy(graph));
    GOOD(hipEventSynchronize(join));
    GOOD(hipEventDestroy(fork));
    GOOD(hipEventDestroy(join));
    GOOD(hipStreamDestroy(b));
    GOOD(hipStreamDestroy(c));
}

void spoilt_captures(struct Setup* s) {
    hipStream_t st = s->stream, gone = NULL;
    hipEvent_t event = NULL;
    hipGraph_t graph = NULL;
    hipStreamCaptureStatus status;
    void* memory = NULL;
    size_t pitch;
    GOOD(hipEventCreate(&event));
    begin(st);
    FAILS(hipStreamQuery(st), hipErrorStreamCaptureUnsupported);
    NO_GRAPH_FROM(st, hipErrorStreamCaptureInvalidated);
    begin(st);
    FAILS(hipStreamAddCallback(st, callback, &status, 0), hipErrorStreamCaptureUnsupported);
    NO_GRAPH_FROM(st, hipErrorStreamCaptureInvalidated);
    begin(st);
    GOOD(hipEventRecord(event, st));
    FAILS(hipEventQuery(event), hipErrorCapturedEvent);
    FAILS(hipEventSynchronize(event), hipErrorCapturedEvent);
    NO_GRAPH_FROM(st, hipErrorStreamCaptureInvalidated);
    // Calls that may disturb a capture that is not relaxed.
    GOOD(hipStreamBeginCapture(st, hipStreamCaptureModeGlobal));
    FAILS(hipMalloc(&memory, 64), hipErrorStreamCaptureUnsupported);
    FAILS(hipMallocManaged(&memory, 64, hipMemAttachGlobal), hipErrorStreamCaptureUnsupported);
    FAILS(hipHostMalloc(&memory, 64, 0), hipErrorStreamCaptureUnsupported);
    FAILS(hipMallocPitch(&memory, &pitch, 64, 2), hipErrorStreamCaptureUnsupported);
    FAILS(hipFree(s->device), hipErrorStreamCaptureUnsupported);
    FAILS(hipDeviceSynchronize(), hipErrorStreamCaptureUnsupported);
    THAT(memory == NULL);
    hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
    GOOD(hipThreadExchangeStreamCaptureMode(&mode));
    GOOD(hipMalloc(&memory, 64));
    GOOD(hipThreadExchangeStreamCaptureMode(&mode));
    THAT(mode == hipStreamCaptureModeRelaxed);
    FAILS(hipFree(memory), hipErrorStreamCaptureUnsupported);
    NO_GRAPH_FROM(st, hipErrorStreamCaptureInvalidated);
    GOOD(hipFree(memory));
    begin(st);
    GOOD(hipMalloc(&memory, 64));
    GOOD(hipMemsetAsync(memory, 1, 64, st));
    drop_capture(st);
    GOOD(hipFree(memory));
    // What a capture needs goes while it is made.
    GOOD(hipStreamCreate(&gone));
    begin(gone);
    GOOD(hipMemsetAsync(s->device, 1, 64, gone));
    GOOD(hipStreamDestroy(gone));
    FAILS(hipStreamEndCapture(gone, &graph), hipErrorContextIsDestroyed);
    GOOD(hipStreamCreate(&gone));
    begin(st);
    GOOD(hipEventRecord(event, st));
    GOOD(hipStreamWaitEvent(gone, event, 0));
    GOOD(hipEventDestroy(event));
    GOOD(hipStreamDestroy(gone));
    NO_GRAPH_FROM(st, hipErrorStreamCaptureInvalidated);
    begin(st);
    GOOD(hipMemsetAsync(s->device, 1, 64, st));
    GOOD(hipStreamGetCaptureInfo_v2(st, &status, NULL, &graph, NULL, NULL));
    GOOD(hipGraphDestroy(graph));
    FAILS(hipMemsetAsync(s->device, 1, 64, st), hipErrorInvalidValue);
    NO_GRAPH_FROM(st, hipErrorStreamCaptureInvalidated);
    GOOD(hipStreamSynchronize(st));
}

struct Thread {
    struct Setup* setup;
    hipStream_t stream;
};

// The thread's own stream, and one whose capture another thread began.
static void* on_thread(void* data) {
    struct Thread* thread = data;
    char* place = thread->setup->device;
    hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
    unsigned long long id = 0;
    hipGraph_t graph = NULL, same = NULL;
    hipGraphExec_t exec = NULL;
    const hipGraphNode_t* nodes = NULL;
    size_t count = 0;
    FAILS(hipStreamEndCapture(thread->stream, &graph), hipErrorStreamCaptureWrongThread);
    GOOD(hipMemsetAsync(place, 5, 64, thread->stream));
    GOOD(hipStreamBeginCapture_spt(NULL, hipStreamCaptureModeRelaxed));
    FAILS(hipStreamBeginCapture_spt(NULL, hipStreamCaptureModeRelaxed), hipErrorIllegalState);
    FAILS(hipStreamBeginCapture_spt((hipStream_t)NOWHERE, hipStreamCaptureModeRelaxed), hipErrorContextIsDestroyed);
    GOOD(hipMemsetAsync_spt(place, 6, 64, NULL));
    GOOD(hipStreamIsCapturing_spt(NULL, &status));
    THAT(status == hipStreamCaptureStatusActive);
    GOOD(hipStreamGetCaptureInfo_v2_spt(NULL, &status, &id, &graph, &nodes, &count));
    THAT(status == hipStreamCaptureStatusActive && id != 0 && count == 1 && nodes[0] != NULL);
    FAILS(hipStreamGetCaptureInfo_v2_spt(NULL, NULL, &id, &graph, &nodes, &count), hipErrorInvalidValue);
    FAILS(hipStreamGetCaptureInfo_v2_spt((hipStream_t)NOWHERE, &status, &id, NULL, NULL, NULL), hipErrorContextIsDestroyed);
    FAILS(hipStreamEndCapture_spt(NULL, NULL), hipErrorInvalidValue);
    GOOD(hipStreamEndCapture_spt(NULL, &same));
    THAT(same == graph);
    FAILS(hipStreamEndCapture_spt(NULL, &same), hipErrorIllegalState);
    THAT(same == NULL);
    GOOD(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    GOOD(hipGraphLaunch_spt(exec, NULL));
    GOOD(hipStreamSynchronize_spt(NULL));
    GOOD(hipGraphExecDestroy(exec));
    GOOD(hipGraphDestroy(graph));
    return NULL;
}

void captures_of_threads(struct Setup* s) {
    struct Thread thread = {s, s->stream};
    pthread_t id;
    size_t count = 0;
    hipGraph_t graph = NULL;
    GOOD(hipStreamBeginCapture(s->stream, hipStreamCaptureModeThreadLocal));
    if (pthread_create(&id, NULL, on_thread, &thread)) exit(3);
    pthread_join(id, NULL);
    GOOD(hipStreamEndCapture(s->stream, &graph));
    GOOD(hipGraphGetNodes(graph, NULL, &count));
    THAT(count == 1);
    GOOD(hipGraphDestroy(graph));
}
