// Which calls are forbidden while streams capture, what they give, and which captures they spoil: every call, in and beside a capture of
// every mode, on a blocking stream and on another one, by the thread that captures and by another one, with every mode of the caller's own.
#pragma clang diagnostic ignored "-Wdeprecated-declarations" // some of the calls are
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "check.h"
#include "runtime.h"

__global__ void capture_calls_nothing() {}
__device__ int capture_calls_variable;

namespace {

enum class Rule {
    kAllowed,
    kUnsafe,         // could wait for the capturing streams: all but relaxed captures forbid it
    kUnsafeUnspoilt, // the same, but the captures go on
    kUnsafeWidely,   // kUnsafe; a caller of the thread's mode is treated as one of the global mode
    kUnsafeAlways,   // every caller is treated as one of the global mode; but what kUnsafe does not forbid spoils nothing
    kUnsafeAlwaysUnspoilt,
    kImplicit,       // waits for the null stream: every capture forbids it
    kDevice,         // waits for all streams: the same, with another error
    kLegacy,         // the null stream's, and not to be captured: blocking streams' captures forbid it
    kCapturing,      // the capturing stream's own, and not to be captured
};

struct Call {
    const char* name;
    Rule rule;
    std::function<hipError_t()> call;
    std::optional<Rule> in_7 = {}, in_6 = {}; // where AMD's releases 7.2.4 and 6.4.3 have another rule
};

// A thread that does one thing after another.
class Hand {
public:
    Hand() : thread_([this] { work(); }) {}
    ~Hand() {
        run(nullptr);
        thread_.join();
    }
    void run(std::function<void()> task) {
        std::unique_lock<std::mutex> lock(mutex_);
        task_ = std::move(task);
        given_ = true;
        changed_.notify_all();
        changed_.wait(lock, [this] { return !given_; });
    }

private:
    void work() {
        std::unique_lock<std::mutex> lock(mutex_);
        for (bool goes_on = true; goes_on;) {
            changed_.wait(lock, [this] { return given_; });
            goes_on = static_cast<bool>(task_);
            if (goes_on) task_();
            given_ = false;
            changed_.notify_all();
        }
    }
    std::mutex mutex_;
    std::condition_variable changed_;
    std::function<void()> task_;
    bool given_ = false;
    std::thread thread_;
};

const hipStreamCaptureMode kModes[] = {hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal, hipStreamCaptureModeRelaxed};

struct Capture {
    hipStreamCaptureMode mode;
    bool is_blocking, is_callers;
};

// The captures that forbid a call that could wait for them.
std::vector<bool> unsafe_for(hipStreamCaptureMode caller, const std::vector<Capture>& captures) {
    auto those = [&](auto condition) {
        std::vector<bool> forbid;
        for (const Capture& capture : captures) forbid.push_back(condition(capture));
        return forbid;
    };
    if (caller == hipStreamCaptureModeRelaxed) return those([](const Capture&) { return false; });
    auto own = those([](const Capture& c) { return c.is_callers && c.mode != hipStreamCaptureModeRelaxed; });
    if (std::count(own.begin(), own.end(), true) > 0 || caller == hipStreamCaptureModeThreadLocal) return own;
    return those([](const Capture& c) { return c.mode == hipStreamCaptureModeGlobal; });
}

// What the captures make of a call: its error, and for each of them whether it is spoilt.
hipError_t outcome(Rule rule, hipStreamCaptureMode caller, const std::vector<Capture>& captures, std::vector<bool>& spoilt) {
    const std::vector<bool> none(captures.size(), false), all(captures.size(), true);
    std::vector<bool> forbid = none;
    hipError_t error = hipErrorStreamCaptureUnsupported;
    bool spoils_none = false;
    switch (rule) {
    case Rule::kAllowed: break;
    case Rule::kUnsafeUnspoilt: spoils_none = true; [[fallthrough]];
    case Rule::kUnsafe: forbid = unsafe_for(caller, captures); break;
    case Rule::kUnsafeWidely:
        forbid = unsafe_for(caller == hipStreamCaptureModeThreadLocal ? hipStreamCaptureModeGlobal : caller, captures);
        break;
    case Rule::kUnsafeAlwaysUnspoilt: spoils_none = true; [[fallthrough]];
    case Rule::kUnsafeAlways:
        forbid = unsafe_for(hipStreamCaptureModeGlobal, captures);
        // A capture that is only forbidding here is not spoilt.
        if (unsafe_for(caller, captures) == none) spoils_none = true;
        break;
    case Rule::kDevice: forbid = all; break;
    case Rule::kImplicit:
        error = hipErrorStreamCaptureImplicit;
        forbid = all;
        break;
    case Rule::kLegacy:
        error = hipErrorStreamCaptureImplicit;
        for (size_t i = 0; i < captures.size(); i++) forbid[i] = captures[i].is_blocking;
        break;
    case Rule::kCapturing: forbid[0] = true; break;
    }
    spoilt = spoils_none ? none : forbid;
    return forbid == none ? hipSuccess : error;
}

Rule rule_of(const Call& call) {
    int amds = check::amds_release();
    return (amds == 6 ? call.in_6 : amds == 7 ? call.in_7 : std::nullopt).value_or(call.rule);
}

hipError_t call_with(hipStreamCaptureMode mode, const Call& call) {
    HIP_CHECK(hipThreadExchangeStreamCaptureMode(&mode));
    (void)hipGetLastError();
    hipError_t error = call.call();
    HIP_CHECK(hipThreadExchangeStreamCaptureMode(&mode));
    return error;
}

void end(hipStream_t stream, bool is_spoilt) {
    hipGraph_t graph = nullptr;
    EXPECT_ERROR(hipStreamEndCapture(stream, &graph), is_spoilt ? hipErrorStreamCaptureInvalidated : hipSuccess);
    EXPECT((graph == nullptr) == is_spoilt);
    if (graph != nullptr) HIP_CHECK(hipGraphDestroy(graph));
}

// One capture, and every call.
void beside_one_capture() {
    float *a, *b, *managed;
    std::vector<float> host(256);
    std::vector<char> registered(8192);
    HIP_CHECK(hipMalloc(reinterpret_cast<void**>(&a), 1024));
    HIP_CHECK(hipMalloc(reinterpret_cast<void**>(&b), 1024));
    HIP_CHECK(hipMallocManaged(reinterpret_cast<void**>(&managed), 4096));
    float* h = host.data();
    hipStream_t streams[2], blocking, other, capturing = nullptr;
    for (unsigned kind = 0; kind < 2; kind++) HIP_CHECK(hipStreamCreateWithFlags(&streams[kind], kind)); // blocking, and not
    HIP_CHECK(hipStreamCreate(&blocking));
    HIP_CHECK(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
    hipEvent_t recorded, never;
    HIP_CHECK(hipEventCreate(&recorded));
    HIP_CHECK(hipEventCreate(&never));
    HIP_CHECK(hipEventRecord(recorded, other));
    hipGraph_t graph;
    hipGraphNode_t node;
    hipGraphExec_t exec;
    HIP_CHECK(hipGraphCreate(&graph, 0));
    HIP_CHECK(hipGraphAddEmptyNode(&node, graph, nullptr, 0));
    HIP_CHECK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    hipMemPool_t pool;
    HIP_CHECK(hipDeviceGetDefaultMemPool(&pool, 0));
    capture_calls_nothing<<<1, 1>>>();
    HIP_CHECK(hipDeviceSynchronize());

    auto wide = [](void* pointer) { return make_hipPitchedPtr(pointer, 64, 64, 2); };
    auto flat = [&] {
        hip_Memcpy2D copy = {};
        copy.srcMemoryType = hipMemoryTypeHost, copy.srcHost = h, copy.srcPitch = 64;
        copy.dstMemoryType = hipMemoryTypeDevice, copy.dstDevice = a, copy.dstPitch = 64;
        copy.WidthInBytes = 64, copy.Height = 2;
        return copy;
    };
    auto box = [&] {
        hipMemcpy3DParms copy = {};
        copy.srcPtr = wide(h), copy.dstPtr = wide(a), copy.extent = make_hipExtent(64, 2, 1), copy.kind = hipMemcpyHostToDevice;
        return copy;
    };
    auto launched = [] { return hipGetLastError(); };
    // Its own error, which it gives where no capture forbids it.
    auto fails = [](hipError_t error, hipError_t own) { return error == own ? hipSuccess : error == hipSuccess ? hipErrorUnknown : error; };
    void* given = nullptr;
    const hipMemcpyKind in = hipMemcpyHostToDevice, out = hipMemcpyDeviceToHost;
    const Rule allowed = Rule::kAllowed, unsafe = Rule::kUnsafe, implicit = Rule::kImplicit, device = Rule::kDevice;
    const Rule widely = Rule::kUnsafeWidely, always = Rule::kUnsafeAlways, capturing_own = Rule::kCapturing;
    const hipStream_t legacy = nullptr;
    const Call calls[] = {
        {"hipMalloc", unsafe, [&] { return hipMalloc(&given, 64); }},
        {"hipMalloc, null", unsafe, [&] { return fails(hipMalloc(static_cast<void**>(nullptr), 64), hipErrorInvalidValue); }},
        {"hipMalloc, 0 bytes", unsafe, [&] { return hipMalloc(&given, 0); }},
        {"hipMallocPitch", unsafe, [&] { size_t pitch; return hipMallocPitch(&given, &pitch, 64, 2); }},
        {"hipMemAllocPitch", unsafe, [&] { size_t pitch; return hipMemAllocPitch(&given, &pitch, 64, 2, 4); }},
        {"hipMalloc3D", unsafe, [&] { hipPitchedPtr pointer; return hipMalloc3D(&pointer, make_hipExtent(64, 2, 1)); }},
        {"hipHostMalloc", unsafe, [&] { return hipHostMalloc(&given, 64, 0); }},
        {"hipHostAlloc", unsafe, [&] { return hipHostAlloc(&given, 64, 0); }},
        {"hipMallocHost", unsafe, [&] { return hipMallocHost(&given, 64); }},
        {"hipMemAllocHost", unsafe, [&] { return hipMemAllocHost(&given, 64); }},
        {"hipMallocManaged", unsafe, [&] { return hipMallocManaged(&given, 64); }, always, allowed},
        {"hipExtMallocWithFlags", allowed, [&] { return hipExtMallocWithFlags(&given, 64, 0); }},
        {"hipFree, null", unsafe, [&] { return hipFree(nullptr); }},
        {"hipFree, wrong", unsafe, [&] { return fails(hipFree(h), hipErrorInvalidValue); }},
        {"hipHostFree", unsafe, [&] { return hipHostFree(nullptr); }},
        {"hipFreeHost", unsafe, [&] { return hipFreeHost(nullptr); }},
        {"hipHostRegister", unsafe, [&] { return hipHostRegister(registered.data(), registered.size(), 0); }},
        {"hipHostUnregister", unsafe, [&] { return fails(hipHostUnregister(registered.data()), hipErrorHostMemoryNotRegistered); }},
        {"hipMemAdvise", unsafe, [&] { return hipMemAdvise(managed, 64, hipMemAdviseSetReadMostly, 0); }, always, allowed},
        {"hipMemPrefetchAsync", unsafe, [&] { return hipMemPrefetchAsync(managed, 64, 0, other); }, unsafe, allowed},
        {"hipMemPoolCreate", Rule::kUnsafeUnspoilt, [&] {
             hipMemPoolProps properties = {};
             properties.allocType = hipMemAllocationTypePinned;
             properties.location.type = hipMemLocationTypeDevice;
             hipMemPool_t made;
             return hipMemPoolCreate(&made, &properties);
         }, Rule::kUnsafeAlwaysUnspoilt, allowed},
        {"hipDeviceSetMemPool", Rule::kUnsafeUnspoilt, [&] { return hipDeviceSetMemPool(0, pool); }, Rule::kUnsafeAlwaysUnspoilt, allowed},
        {"hipDeviceGetDefaultMemPool", allowed, [&] { return hipDeviceGetDefaultMemPool(&pool, 0); }},
        {"hipPointerGetAttributes", allowed, [&] { hipPointerAttribute_t attributes; return hipPointerGetAttributes(&attributes, a); }},

        {"hipDeviceSynchronize", device, [&] { return hipDeviceSynchronize(); }},
        {"hipStreamSynchronize, other", unsafe, [&] { return hipStreamSynchronize(other); }, unsafe, widely},
        {"hipStreamSynchronize, blocking", unsafe, [&] { return hipStreamSynchronize(blocking); }, unsafe, widely},
        {"hipStreamSynchronize, capturing", capturing_own, [&] { return hipStreamSynchronize(capturing); }},
        {"hipStreamSynchronize, null", allowed, [&] { return hipStreamSynchronize(legacy); }},
        {"hipStreamQuery, other", unsafe, [&] { return hipStreamQuery(other); }, unsafe, widely},
        {"hipStreamQuery, capturing", capturing_own, [&] { return hipStreamQuery(capturing); }},
        {"hipEventSynchronize", unsafe, [&] { return hipEventSynchronize(recorded); }, unsafe, widely},
        {"hipEventSynchronize, never recorded", unsafe, [&] { return hipEventSynchronize(never); }, unsafe, allowed},
        {"hipEventQuery", unsafe, [&] { return hipEventQuery(recorded); }, unsafe, allowed},
        {"hipEventQuery, never recorded", unsafe, [&] { return hipEventQuery(never); }, unsafe, allowed},
        {"hipEventQuery, null", allowed, [&] { return fails(hipEventQuery(nullptr), hipErrorInvalidHandle); }},
        {"hipEventElapsedTime", allowed, [&] { float ms; return fails(hipEventElapsedTime(&ms, never, never), hipErrorInvalidHandle); }},
        {"hipStreamWaitEvent", allowed, [&] { return hipStreamWaitEvent(other, recorded, 0); }},
        {"hipStreamAddCallback, null", Rule::kLegacy, [&] { return hipStreamAddCallback(legacy, [](hipStream_t, hipError_t, void*) {}, nullptr, 0); }, Rule::kLegacy, allowed},
        {"hipStreamAddCallback, other", allowed, [&] { return hipStreamAddCallback(other, [](hipStream_t, hipError_t, void*) {}, nullptr, 0); }},
        {"hipStreamAddCallback, capturing", capturing_own, [&] { return hipStreamAddCallback(capturing, [](hipStream_t, hipError_t, void*) {}, nullptr, 0); }, capturing_own, allowed},
        {"hipLaunchHostFunc, null", allowed, [&] { return hipLaunchHostFunc(legacy, [](void*) {}, nullptr); }},
        {"hipEventRecord, null", allowed, [&] { return hipEventRecord(recorded, legacy); }},
        {"a kernel, null", allowed, [&] { capture_calls_nothing<<<1, 1>>>(); return launched(); }},
        {"a kernel, blocking", allowed, [&] { capture_calls_nothing<<<1, 1, 0, blocking>>>(); return launched(); }},
        {"hipGraphLaunch, null", allowed, [&] { return hipGraphLaunch(exec, legacy); }},
        {"hipMemcpyAsync, null", allowed, [&] { return hipMemcpyAsync(b, a, 64, hipMemcpyDeviceToDevice, legacy); }},
        {"hipMemcpyAsync, other", allowed, [&] { return hipMemcpyAsync(b, a, 64, hipMemcpyDeviceToDevice, other); }},
        {"hipMemsetAsync, null", allowed, [&] { return hipMemsetAsync(a, 0, 64, legacy); }},
        {"hipMemcpyWithStream, other", unsafe, [&] { return hipMemcpyWithStream(a, h, 64, in, other); }, unsafe, allowed},
        {"hipMemcpyWithStream, capturing", capturing_own, [&] { return hipMemcpyWithStream(a, h, 64, in, capturing); }, capturing_own, allowed},

        {"hipMemcpy, to the device", implicit, [&] { return hipMemcpy(a, h, 64, in); }},
        {"hipMemcpy, on the host", implicit, [&] { return hipMemcpy(h + 64, h, 64, hipMemcpyHostToHost); }},
        {"hipMemcpy, 0 bytes", implicit, [&] { return hipMemcpy(a, h, 0, in); }},
        {"hipMemcpy, null", implicit, [&] { return hipMemcpy(nullptr, h, 64, in); }},
        {"hipMemcpy_spt", implicit, [&] { return hipMemcpy_spt(h, a, 64, out); }},
        {"hipMemcpyHtoD", implicit, [&] { return hipMemcpyHtoD(a, h, 64); }},
        {"hipMemcpyDtoH", implicit, [&] { return hipMemcpyDtoH(h, a, 64); }},
        {"hipMemcpyDtoD", implicit, [&] { return hipMemcpyDtoD(b, a, 64); }},
        {"hipMemcpyPeer", implicit, [&] { return hipMemcpyPeer(a, 0, b, 0, 64); }, implicit, allowed},
        {"hipMemcpyToSymbol", implicit, [&] { return hipMemcpyToSymbol(HIP_SYMBOL(capture_calls_variable), h, 4); }},
        {"hipMemcpyFromSymbol", implicit, [&] { return hipMemcpyFromSymbol(h, HIP_SYMBOL(capture_calls_variable), 4); }},
        {"hipMemcpyToSymbol_spt", implicit, [&] { return hipMemcpyToSymbol_spt(&capture_calls_variable, h, 4, 0, in); }},
        {"hipMemcpyFromSymbol_spt", implicit, [&] { return hipMemcpyFromSymbol_spt(h, &capture_calls_variable, 4, 0, out); }},
        {"hipMemcpy2D", implicit, [&] { return hipMemcpy2D(a, 64, h, 64, 64, 2, in); }},
        {"hipMemcpy2D_spt", implicit, [&] { return hipMemcpy2D_spt(a, 64, h, 64, 64, 2, in); }},
        {"hipMemcpyParam2D", implicit, [&] { auto copy = flat(); return hipMemcpyParam2D(&copy); }},
        {"hipDrvMemcpy2DUnaligned", allowed, [&] { auto copy = flat(); return hipDrvMemcpy2DUnaligned(&copy); }},
        {"hipMemcpy3D", implicit, [&] { auto copy = box(); return hipMemcpy3D(&copy); }},
        {"hipMemcpy3D_spt", implicit, [&] { auto copy = box(); return hipMemcpy3D_spt(&copy); }},
        {"hipDrvMemcpy3D", implicit, [&] {
             HIP_MEMCPY3D copy = {};
             copy.srcMemoryType = hipMemoryTypeHost, copy.srcHost = h, copy.srcPitch = 64;
             copy.dstMemoryType = hipMemoryTypeDevice, copy.dstDevice = a, copy.dstPitch = 64;
             copy.WidthInBytes = 64, copy.Height = 2, copy.Depth = 1;
             return hipDrvMemcpy3D(&copy);
         }},
        {"hipMemset", implicit, [&] { return hipMemset(a, 0, 64); }},
        {"hipMemset, 0 bytes", implicit, [&] { return hipMemset(a, 0, 0); }},
        {"hipMemset, null", implicit, [&] { return hipMemset(nullptr, 0, 64); }},
        {"hipMemset_spt", implicit, [&] { return hipMemset_spt(a, 0, 64); }},
        {"hipMemsetD8", implicit, [&] { return hipMemsetD8(a, 0, 16); }},
        {"hipMemsetD16", implicit, [&] { return hipMemsetD16(a, 0, 16); }},
        {"hipMemsetD32", implicit, [&] { return hipMemsetD32(a, 0, 16); }},
        {"hipMemset2D", implicit, [&] { return hipMemset2D(a, 64, 0, 64, 2); }},
        {"hipMemset2D_spt", implicit, [&] { return hipMemset2D_spt(a, 64, 0, 64, 2); }},
        {"hipMemset3D", implicit, [&] { return hipMemset3D(wide(a), 0, make_hipExtent(64, 2, 1)); }},
    };
    Hand hand;
    for (const Call& call : calls)
        for (auto mode : kModes)
            for (auto caller : kModes)
                for (int kind = 0; kind < 2; kind++)
                    for (bool is_callers : {true, false}) {
                        (void)hipHostUnregister(registered.data());
                        capturing = streams[kind];
                        HIP_CHECK(hipStreamBeginCapture(capturing, mode));
                        hipError_t error = hipSuccess;
                        auto carry_out = [&] { error = call_with(caller, call); };
                        if (is_callers) carry_out();
                        else hand.run(carry_out);
                        std::vector<bool> spoilt;
                        hipError_t wanted = outcome(rule_of(call), caller, {{mode, kind == 0, is_callers}}, spoilt);
                        check::values_compared++;
                        if (error != wanted)
                            check::fail("%s: %d instead of %d beside a capture of mode %d on a%s stream, called with mode %d by %s thread", call.name, error,
                                        wanted, mode, kind == 0 ? " blocking" : " non-blocking", caller, is_callers ? "its" : "another");
                        hipStreamCaptureStatus status;
                        HIP_CHECK(hipStreamIsCapturing(capturing, &status));
                        EXPECT(status == (spoilt[0] ? hipStreamCaptureStatusInvalidated : hipStreamCaptureStatusActive));
                        end(capturing, spoilt[0]);
                    }
}

// Two captures by two threads, and calls by the first and by a third one.
void beside_two_captures() {
    float* memory;
    std::vector<float> host(16);
    hipStream_t streams[2];
    hipEvent_t recorded;
    HIP_CHECK(hipMalloc(reinterpret_cast<void**>(&memory), 64));
    for (hipStream_t& stream : streams) HIP_CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    HIP_CHECK(hipEventCreate(&recorded));
    void* given = nullptr;
    const Call calls[] = {
        {"hipMalloc", Rule::kUnsafe, [&] { return hipMalloc(&given, 64); }},
        {"hipDeviceSynchronize", Rule::kDevice, [&] { return hipDeviceSynchronize(); }},
        {"hipMemcpy", Rule::kImplicit, [&] { return hipMemcpy(memory, host.data(), 64, hipMemcpyHostToDevice); }},
        {"hipStreamSynchronize, the first", Rule::kCapturing, [&] { return hipStreamSynchronize(streams[0]); }},
        {"hipStreamSynchronize, null", Rule::kAllowed, [&] { return hipStreamSynchronize(nullptr); }},
    };
    Hand hands[3];
    for (const Call& call : calls)
        for (auto first : kModes)
            for (auto second : kModes)
                for (auto caller : kModes)
                    for (int hand : {0, 2}) {
                        hands[0].run([&] { HIP_CHECK(hipStreamBeginCapture(streams[0], first)); });
                        hands[1].run([&] { HIP_CHECK(hipStreamBeginCapture(streams[1], second)); });
                        hipError_t error = hipSuccess;
                        hands[hand].run([&] { error = call_with(caller, call); });
                        std::vector<bool> spoilt;
                        hipError_t wanted = outcome(rule_of(call), caller, {{first, false, hand == 0}, {second, false, false}}, spoilt);
                        check::values_compared++;
                        if (error != wanted)
                            check::fail("%s: %d instead of %d beside captures of modes %d and %d, called with mode %d by thread %d", call.name, error, wanted,
                                        first, second, caller, hand);
                        for (int i : {0, 1}) hands[i].run([&] { end(streams[i], spoilt[i]); });
                    }
}

} // namespace

int main() {
    check::begin("capture_calls");
    beside_one_capture();
    beside_two_captures();
    return check::finish();
}
