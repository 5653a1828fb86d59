// A synchronous copy to the device is over when it returns: whatever comes after it, on whatever stream, finds its bytes, although the copy
// itself had to wait for other work. Every function that makes such copies, every size (few bytes, many, more than may be kept back), from
// memory of either kind, before a kernel, a copy and a fetch on a stream that waits for no other.
#include "check.h"

namespace {

constexpr size_t kCounts[] = {1, 64, 16384, 262144};
constexpr size_t kMax = 262144;

__device__ int variable[kMax];

// Takes long enough that what does not wait for it comes first.
__global__ void slow_store(int* out) {
    for (int round = 0; round < 1000; round++) __builtin_amdgcn_s_sleep(10);
    *out = 1;
}
__global__ void ends(int* out, const int* in, size_t count) {
    out[0] = in[0];
    out[1] = in[count - 1];
}

enum Function { kMemcpy, kMemcpyDefault, kHtoD, k2D, k3D, kParam2D, kToSymbol, kWithStream, kBlockingStream, kNonBlockingStream, kFunctions };
enum Later { kKernel, kCopy, kFetch, kLater };
const char* const kNames[] = {"hipMemcpy", "hipMemcpyDefault", "hipMemcpyHtoD", "hipMemcpy2D", "hipMemcpy3D", "hipMemcpyParam2D", "hipMemcpyToSymbol",
                              "hipMemcpyWithStream", "hipMemcpy behind a blocking stream", "hipMemcpyWithStream of a stream"};

void copy(Function function, int* to, int* from, size_t count, hipStream_t own) {
    const size_t bytes = count * sizeof(int), rows = count >= 8 ? 8 : 1;
    switch (function) {
    case kMemcpy:
    case kBlockingStream: HIP_CHECK(hipMemcpy(to, from, bytes, hipMemcpyHostToDevice)); break;
    case kMemcpyDefault: HIP_CHECK(hipMemcpy(to, from, bytes, hipMemcpyDefault)); break;
    case kHtoD: HIP_CHECK(hipMemcpyHtoD(reinterpret_cast<hipDeviceptr_t>(to), from, bytes)); break;
    case k2D: HIP_CHECK(hipMemcpy2D(to, bytes / rows, from, bytes / rows, bytes / rows, rows, hipMemcpyHostToDevice)); break;
    case k3D: {
        hipMemcpy3DParms params = {};
        params.srcPtr = make_hipPitchedPtr(from, bytes / rows, bytes / rows, rows);
        params.dstPtr = make_hipPitchedPtr(to, bytes / rows, bytes / rows, rows);
        params.extent = make_hipExtent(bytes / rows, rows, 1);
        params.kind = hipMemcpyHostToDevice;
        HIP_CHECK(hipMemcpy3D(&params));
        break;
    }
    case kParam2D: {
        hip_Memcpy2D params = {};
        params.srcMemoryType = hipMemoryTypeHost;
        params.srcHost = from;
        params.srcPitch = params.dstPitch = params.WidthInBytes = bytes / rows;
        params.dstMemoryType = hipMemoryTypeDevice;
        params.dstDevice = reinterpret_cast<hipDeviceptr_t>(to);
        params.Height = rows;
        HIP_CHECK(hipMemcpyParam2D(&params));
        break;
    }
    case kToSymbol: HIP_CHECK(hipMemcpyToSymbol(HIP_SYMBOL(variable), from, bytes)); break;
    case kWithStream: HIP_CHECK(hipMemcpyWithStream(to, from, bytes, hipMemcpyHostToDevice, nullptr)); break;
    default: HIP_CHECK(hipMemcpyWithStream(to, from, bytes, hipMemcpyHostToDevice, own));
    }
}

} // namespace

int main() {
    check::begin("synchronous_copies");
    hipStream_t blocking, non_blocking, later_stream;
    HIP_CHECK(hipStreamCreate(&blocking));
    HIP_CHECK(hipStreamCreateWithFlags(&non_blocking, hipStreamNonBlocking));
    HIP_CHECK(hipStreamCreateWithFlags(&later_stream, hipStreamNonBlocking));
    DeviceArray<int> memory(kMax), found(2), done(1);
    void* symbol = nullptr;
    HIP_CHECK(hipGetSymbolAddress(&symbol, HIP_SYMBOL(variable)));
    std::vector<int> pageable(kMax);
    int* pinned = nullptr;
    HIP_CHECK(hipHostMalloc(&pinned, kMax * sizeof(int), 0));
    int value = 0;
    for (int function = 0; function < kFunctions; function++)
        for (size_t count : kCounts)
            for (bool is_pinned : {false, true})
                for (int later = 0; later < kLater; later++) {
                    int* from = is_pinned ? pinned : pageable.data();
                    int* to = function == kToSymbol ? static_cast<int*>(symbol) : memory.get();
                    from[0] = from[count - 1] = ++value;
                    hipStream_t busy = function == kBlockingStream ? blocking : function == kNonBlockingStream ? non_blocking : nullptr;
                    slow_store<<<1, 1, 0, busy>>>(done.get());
                    copy(static_cast<Function>(function), to, from, count, non_blocking);
                    // The program may change what was copied.
                    from[0] = from[count - 1] = -1;
                    int got[2] = {};
                    if (later == kKernel) ends<<<1, 1, 0, later_stream>>>(found.get(), to, count);
                    for (int end : {0, 1}) {
                        const int* at = to + (end == 0 ? 0 : count - 1);
                        if (later == kCopy) HIP_CHECK(hipMemcpyAsync(found.get() + end, at, sizeof(int), hipMemcpyDeviceToDevice, later_stream));
                        else if (later == kFetch) HIP_CHECK(hipMemcpyAsync(&got[end], at, sizeof(int), hipMemcpyDeviceToHost, later_stream));
                    }
                    if (later != kFetch) HIP_CHECK(hipMemcpyAsync(got, found.get(), sizeof got, hipMemcpyDeviceToHost, later_stream));
                    HIP_CHECK(hipStreamSynchronize(later_stream));
                    check::values_compared++;
                    if (got[0] != value || got[1] != value)
                        check::fail("%s of %zu values from %s memory, then %s: %d and %d instead of %d", kNames[function], count,
                                    is_pinned ? "pinned" : "pageable", later == kKernel ? "a kernel" : later == kCopy ? "a copy" : "a fetch", got[0], got[1], value);
                    HIP_CHECK(hipDeviceSynchronize());
                }
    HIP_CHECK(hipHostFree(pinned));
    for (hipStream_t stream : {blocking, non_blocking, later_stream}) HIP_CHECK(hipStreamDestroy(stream));
    return check::finish();
}
