// Streams, events, captures, host functions, values that streams write.
#include <atomic>

#include "../answers.h"

using namespace answers;

static hipStream_t stream, other, capturing;
static hipEvent_t recorded, later, plain, untimed, unhappened;
static std::string line_of;

static void of_stream() {
    unsigned flags = 0;
    int priority = 0;
    note("flags", int(hipStreamGetFlags(results.stream, &flags)));
    note("flags", flags);
    note("priority", int(hipStreamGetPriority(results.stream, &priority)));
    note("priority", priority);
    note("destroy", int(hipStreamDestroy(results.stream)));
}
static void nobody(void*) {}
static void nobody_told(hipStream_t, hipError_t, void*) {}

// What is answered while a stream captures, each time in a capture of its own, and how that capture ends.
#define CAPTURED(mode, ...)                                                                                       \
    one(std::string(#mode ": ") + #__VA_ARGS__ + line_of, [&] {                                                             \
        hipStreamBeginCapture(capturing, mode);                                                                   \
        const hipError_t error = __VA_ARGS__;                                                                     \
        hipStreamCaptureStatus status = {};                                                                       \
        note("status", int(hipStreamIsCapturing(capturing, &status)));                                            \
        note("status", int(status));                                                                              \
        hipGraph_t graph = nullptr;                                                                               \
        note("end", int(hipStreamEndCapture(capturing, &graph)));                                                 \
        size_t nodes = 0;                                                                                         \
        if (graph != nullptr) hipGraphGetNodes(graph, nullptr, &nodes), hipGraphDestroy(graph);                    \
        note("nodes", nodes);                                                                                     \
        line += " error=";                                                                                        \
        return error;                                                                                             \
    }, nothing)

int main(int count, char** arguments) {
    begin(count, arguments);
    Results& r = results;
    hipStreamCreate(&stream);
    hipStreamCreateWithFlags(&other, hipStreamNonBlocking);
    hipStreamCreate(&capturing);
    hipEventCreate(&recorded);
    hipEventCreate(&later);
    hipEventCreate(&plain);
    hipEventCreateWithFlags(&untimed, hipEventDisableTiming);
    hipEventRecord(recorded, stream);
    hipEventRecord(later, stream);
    hipDeviceSynchronize();

    auto into = any<hipStream_t*>({OF(&r.stream), OF(nullptr)});
    each(FUNCTION(hipStreamCreate), of_stream, into);
    each(FUNCTION(hipStreamCreateWithFlags), of_stream, into, any<unsigned>({OF(hipStreamDefault), OF(hipStreamNonBlocking), OF(2), OF(3), OF(0x80000000)}));
    each(FUNCTION(hipStreamCreateWithPriority), of_stream, into, any<unsigned>({OF(hipStreamDefault), OF(hipStreamNonBlocking), OF(2)}), any<int>({OF(0), OF(1), OF(-1), OF(2), OF(-2), OF(99), OF(-99)}));
    static uint32_t masks[] = {0xff, 0, 0xffffffff};
    each(FUNCTION(hipExtStreamCreateWithCUMask), of_stream, into, any<uint32_t>({OF(1), OF(0), OF(2)}), any<const uint32_t*>({OF(masks), OF(masks + 1), OF(nullptr)}));
    auto streams = any<hipStream_t>({OF(stream), OF(other), OF(nullptr), OF(hipStreamPerThread), OF(hipStreamLegacy)});
    each(FUNCTION(hipStreamGetFlags), nothing, streams, any<unsigned*>({OF(&r.flags), OF(nullptr)}));
    each(FUNCTION(hipStreamGetPriority), nothing, streams, any<int*>({OF(&r.number), OF(nullptr)}));
    each(FUNCTION(hipStreamGetDevice), nothing, streams, any<int*>({OF(&r.number), OF(nullptr)}));
    static uint32_t mask[8];
    each(FUNCTION(hipExtStreamGetCUMask), [] { note("first", mask[0] != 0); }, streams, any<uint32_t>({OF(8), OF(0), OF(1), OF(16)}), any<uint32_t*>({OF(mask), OF(nullptr)}));
    each(FUNCTION(hipStreamQuery), nothing, streams);
    each(FUNCTION(hipStreamSynchronize), nothing, streams);
    each(FUNCTION(hipStreamDestroy), nothing, any<hipStream_t>({OF(nullptr), OF(hipStreamPerThread), OF(hipStreamLegacy)}));
    each("hipStreamWaitEvent", [](hipStream_t on, hipEvent_t of, unsigned flags) { return hipStreamWaitEvent(on, of, flags); }, settle, streams, any<hipEvent_t>({OF(recorded), OF(plain), OF(untimed), OF(nullptr)}), any<unsigned>({OF(0), OF(1), OF(2)}));
    each(FUNCTION(hipStreamAddCallback), settle, streams, any<hipStreamCallback_t>({OF(nobody_told), OF(nullptr)}), any<void*>({OF(nullptr), OF(&r)}), any<unsigned>({OF(0), OF(1)}));
    each(FUNCTION(hipLaunchHostFunc), settle, streams, any<hipHostFn_t>({OF(nobody), OF(nullptr)}), any<void*>({OF(nullptr), OF(&r)}));
    static int* managed;
    hipMallocManaged(reinterpret_cast<void**>(&managed), 64);
    each("hipStreamAttachMemAsync", [](hipStream_t on, void* of, size_t size, unsigned flags) { return hipStreamAttachMemAsync(on, of, size, flags); }, settle, streams, any<void*>({OF(managed), OF(&r), OF(nullptr)}), any<size_t>({OF(0), OF(64), OF(4)}), any<unsigned>({OF(hipMemAttachSingle), OF(hipMemAttachHost), OF(hipMemAttachGlobal), OF(3)}));

    auto event = any<hipEvent_t*>({OF(&r.event), OF(nullptr)});
    each("hipEventCreate", [](hipEvent_t* to) { return hipEventCreate(to); }, [] { hipEventDestroy(results.event); }, event);
    each(FUNCTION(hipEventCreateWithFlags), [] { hipEventDestroy(results.event); }, event,
         any<unsigned>({OF(hipEventDefault), OF(hipEventBlockingSync), OF(hipEventDisableTiming), OF(hipEventInterprocess), OF(hipEventInterprocess | hipEventDisableTiming), OF(hipEventReleaseToDevice), OF(hipEventReleaseToSystem), OF(hipEventReleaseToDevice | hipEventReleaseToSystem), OF(hipEventDisableSystemFence), OF(0x8), OF(0x10), OF(0x100)}));
    auto events = any<hipEvent_t>({OF(recorded), OF(plain), OF(untimed), OF(nullptr)});
    each(FUNCTION(hipEventQuery), nothing, events);
    each(FUNCTION(hipEventSynchronize), nothing, events);
    each(FUNCTION(hipEventElapsedTime), nothing, any<float*>({OF(&r.time_ms), OF(nullptr)}), any<hipEvent_t>({OF(recorded), OF(later), OF(plain), OF(untimed), OF(nullptr)}), any<hipEvent_t>({OF(later), OF(recorded), OF(plain), OF(untimed), OF(nullptr)}));
    each("hipEventRecord", [](hipEvent_t of, hipStream_t on) { return hipEventRecord(of, on); }, settle, any<hipEvent_t>({OF(recorded), OF(untimed), OF(nullptr)}), streams);
    each("hipEventRecordWithFlags", [](hipEvent_t of, hipStream_t on, unsigned flags) { return hipEventRecordWithFlags(of, on, flags); }, settle, any<hipEvent_t>({OF(recorded), OF(untimed), OF(nullptr)}), streams, any<unsigned>({OF(0), OF(1), OF(2)}));
    each(FUNCTION(hipEventDestroy), nothing, any<hipEvent_t>({OF(nullptr)}));
    static hipIpcEventHandle_t handle;
    each(FUNCTION(hipIpcGetEventHandle), nothing, any<hipIpcEventHandle_t*>({OF(&handle), OF(nullptr)}), events);

    static uint64_t* signals;
    static char* device;
    hipExtMallocWithFlags(reinterpret_cast<void**>(&signals), 8, hipMallocSignalMemory);
    hipMalloc(&device, 64);
    hipMemset(device, 0, 64);
    auto places = any<void*>({OF(device), OF(signals), OF(device + 4), OF(&r), OF(nullptr)});
    each("hipStreamWriteValue32", [](hipStream_t on, void* to, uint32_t v, unsigned flags) { return hipStreamWriteValue32(on, to, v, flags); }, settle, streams, places, any<uint32_t>({OF(1), OF(0)}), any<unsigned>({OF(0), OF(1), OF(2)}));
    each("hipStreamWriteValue64", [](hipStream_t on, void* to, uint64_t v, unsigned flags) { return hipStreamWriteValue64(on, to, v, flags); }, settle, streams, any<void*>({OF(device), OF(signals), OF(&r), OF(nullptr)}), any<uint64_t>({OF(1), OF(0)}), any<unsigned>({OF(0), OF(1), OF(2)}));
    hipMemset(device, 0, 64);
    each("hipStreamWaitValue32", [](hipStream_t on, void* of, uint32_t v, unsigned flags, uint32_t mask) { return hipStreamWaitValue32(on, of, v, flags, mask); }, settle, streams, any<void*>({OF(device), OF(&r), OF(nullptr)}), any<uint32_t>({OF(0)}), any<unsigned>({OF(hipStreamWaitValueGte), OF(hipStreamWaitValueEq), {"9", 9}}), any<uint32_t>({OF(0xffffffff), OF(1)}));
    each("hipStreamWaitValue64", [](hipStream_t on, void* of, uint64_t v, unsigned flags, uint64_t mask) { return hipStreamWaitValue64(on, of, v, flags, mask); }, settle, streams, any<void*>({OF(device), OF(&r), OF(nullptr)}), any<uint64_t>({OF(0)}), any<unsigned>({OF(hipStreamWaitValueGte), OF(hipStreamWaitValueEq), {"9", 9}}), any<uint64_t>({OF(~0ull), OF(1)}));

    auto is = any<hipStreamCaptureStatus*>({{"&r.number", reinterpret_cast<hipStreamCaptureStatus*>(&r.number)}, OF(nullptr)});
    each(FUNCTION(hipStreamIsCapturing), nothing, streams, is);
    each(FUNCTION(hipStreamGetCaptureInfo), nothing, streams, is, any<unsigned long long*>({OF(&r.id), OF(nullptr)}));
    each("hipStreamGetCaptureInfo_v2", [](hipStream_t of, hipStreamCaptureStatus* to, unsigned long long* id, hipGraph_t* graph, size_t* dependencies) { return hipStreamGetCaptureInfo_v2(of, to, id, graph, nullptr, dependencies); }, nothing, streams, is, any<unsigned long long*>({OF(&r.id), OF(nullptr)}), any<hipGraph_t*>({OF(&r.graph), OF(nullptr)}), any<size_t*>({OF(&r.size), OF(nullptr)}));
    each(FUNCTION(hipStreamBeginCapture), [] { hipGraph_t graph = nullptr; note("end", int(hipStreamEndCapture(stream, &graph))); }, any<hipStream_t>({OF(stream), OF(nullptr), OF(hipStreamLegacy)}), any<hipStreamCaptureMode>({OF(hipStreamCaptureModeRelaxed), OF(hipStreamCaptureModeGlobal), OF(hipStreamCaptureModeThreadLocal), {"9", hipStreamCaptureMode(9)}}));
    each(FUNCTION(hipStreamEndCapture), nothing, any<hipStream_t>({OF(stream), OF(nullptr), OF(hipStreamPerThread), OF(hipStreamLegacy)}), any<hipGraph_t*>({OF(&r.graph), OF(nullptr)}));
    each("hipStreamUpdateCaptureDependencies", [](hipStream_t on, size_t number, unsigned flags) { return hipStreamUpdateCaptureDependencies(on, nullptr, number, flags); }, nothing, any<hipStream_t>({OF(stream), OF(nullptr)}), any<size_t>({OF(0), OF(1)}), any<unsigned>({OF(0), OF(1), OF(2)}));
    static hipStreamCaptureMode mode = hipStreamCaptureModeGlobal;
    each("hipThreadExchangeStreamCaptureMode", [](hipStreamCaptureMode* exchanged) { return hipThreadExchangeStreamCaptureMode(exchanged); }, [] { note("was", int(mode)); }, any<hipStreamCaptureMode*>({OF(&mode), OF(nullptr)}));
    ONE((mode = hipStreamCaptureMode(9), hipThreadExchangeStreamCaptureMode(&mode)), nothing);
    ONE((mode = hipStreamCaptureModeGlobal, hipThreadExchangeStreamCaptureMode(&mode)), nothing);

    static char host[64];
    static void* pointer;
    static char* pinned;
    static hipEvent_t inside;
    hipHostMalloc(reinterpret_cast<void**>(&pinned), 64);
    hipEventCreate(&inside);
#define WITH_EACH_MODE(...)                              \
    CAPTURED(hipStreamCaptureModeGlobal, __VA_ARGS__);   \
    CAPTURED(hipStreamCaptureModeThreadLocal, __VA_ARGS__); \
    CAPTURED(hipStreamCaptureModeRelaxed, __VA_ARGS__)
    WITH_EACH_MODE(hipMemsetAsync(device, 0, 64, capturing));
    WITH_EACH_MODE(hipMemset(device, 0, 64));
    WITH_EACH_MODE(hipMemsetAsync(device, 0, 64, other));
    WITH_EACH_MODE(hipMemsetAsync(device, 0, 64, stream));
    WITH_EACH_MODE(hipMemsetAsync(device, 0, 64, nullptr));
    WITH_EACH_MODE(hipMemcpyAsync(device, pinned, 64, hipMemcpyDefault, capturing));
    WITH_EACH_MODE(hipMemcpyAsync(device, host, 64, hipMemcpyHostToDevice, capturing));
    WITH_EACH_MODE(hipMemcpyAsync(host, device, 64, hipMemcpyDeviceToHost, capturing));
    WITH_EACH_MODE(hipMemcpy(device, host, 64, hipMemcpyHostToDevice));
    WITH_EACH_MODE(hipMemcpyWithStream(device, host, 64, hipMemcpyHostToDevice, capturing));
    WITH_EACH_MODE(hipMemcpyAsync(device, nullptr, 64, hipMemcpyDefault, capturing));
    WITH_EACH_MODE(hipMemcpyAsync(device, pinned, 0, hipMemcpyDefault, capturing));
    WITH_EACH_MODE(hipMalloc(&pointer, 64));
    WITH_EACH_MODE(hipFree(nullptr));
    WITH_EACH_MODE(hipHostMalloc(&pointer, 64));
    WITH_EACH_MODE(hipMallocManaged(&pointer, 64));
    WITH_EACH_MODE(hipMallocAsync(&pointer, 64, capturing));
    WITH_EACH_MODE(hipFreeAsync(nullptr, capturing));
    WITH_EACH_MODE(hipStreamSynchronize(capturing));
    WITH_EACH_MODE(hipStreamSynchronize(other));
    WITH_EACH_MODE(hipStreamSynchronize(nullptr));
    WITH_EACH_MODE(hipStreamQuery(capturing));
    WITH_EACH_MODE(hipStreamQuery(other));
    WITH_EACH_MODE(hipStreamQuery(nullptr));
    WITH_EACH_MODE(hipDeviceSynchronize());
    WITH_EACH_MODE(hipEventRecord(inside, capturing));
    WITH_EACH_MODE(hipEventRecord(plain, other));
    WITH_EACH_MODE(hipEventQuery(recorded));
    WITH_EACH_MODE(hipEventSynchronize(recorded));
    for (const auto& [name, of] : {std::pair{"stream", stream}, {"other", other}, {"null", hipStream_t(nullptr)}, {"per thread", hipStreamPerThread}}) {
        hipEventRecord(recorded, of);
        hipDeviceSynchronize();
        line_of = std::string(" of ") + name;
        WITH_EACH_MODE(hipStreamWaitEvent(capturing, recorded, 0));
    }
    line_of = "";
    WITH_EACH_MODE(hipStreamWaitEvent(capturing, plain, 0));
    // An event that has not happened: what is before it waits until the capture is over.
    static std::atomic<bool> is_over;
    hipEventCreate(&unhappened);
    hipLaunchHostFunc(other, [](void*) { while (!is_over) usleep(1000); }, nullptr);
    hipEventRecord(unhappened, other);
    WITH_EACH_MODE(hipStreamWaitEvent(capturing, unhappened, 0));
    WITH_EACH_MODE(hipStreamWaitEvent(capturing, unhappened, 1 /* hipEventWaitExternal */));
    is_over = true;
    hipDeviceSynchronize();
    WITH_EACH_MODE(hipStreamWaitEvent(other, recorded, 0));
    WITH_EACH_MODE(hipLaunchHostFunc(capturing, nobody, nullptr));
    WITH_EACH_MODE(hipStreamAddCallback(capturing, nobody_told, nullptr, 0));
    WITH_EACH_MODE(hipStreamCreate(&r.stream));
    WITH_EACH_MODE(hipStreamDestroy(r.stream = nullptr));
    WITH_EACH_MODE(hipEventCreate(&r.event));
    WITH_EACH_MODE(hipStreamBeginCapture(capturing, hipStreamCaptureModeRelaxed));
    WITH_EACH_MODE(hipStreamGetFlags(capturing, &r.flags));
    WITH_EACH_MODE(hipStreamGetPriority(capturing, &r.number));
    WITH_EACH_MODE(hipGetSymbolSize(&r.size, nullptr));
    WITH_EACH_MODE(hipSetDevice(0));
    WITH_EACH_MODE(hipMemGetInfo(nullptr, nullptr));
    WITH_EACH_MODE(hipStreamWriteValue32(capturing, device, 1, 0));
    WITH_EACH_MODE(hipMemPrefetchAsync(managed, 64, 0, capturing));
    WITH_EACH_MODE(hipStreamAttachMemAsync(capturing, managed, 0, hipMemAttachSingle));
    return 0;
}
