// A synchronous copy between two devices is over when it returns, although it had to wait for other work: whatever comes after it, on whatever
// stream of either device, finds its bytes at the destination, and may change the source. Every function that makes such copies, in both
// directions, while either device is the current one.
#include "../pair.h"

namespace {

constexpr int kCount = 64;
constexpr size_t kBytes = kCount * sizeof(int), kRows = 4;

__device__ int variable[kCount];

// Takes long enough that what does not wait for it comes first.
__global__ void slow_store(int* out) {
    for (int round = 0; round < 1000; round++) __builtin_amdgcn_s_sleep(10);
    *out = 1;
}
__global__ void ends(int* out, const int* in) {
    out[0] = in[0];
    out[1] = in[kCount - 1];
}
__global__ void overwrite(int* out) { out[threadIdx.x] = -1; }

enum Function { kMemcpy, kMemcpyDefault, kDtoD, k2D, k3D, kWithStream, kPeer, k3DPeer, kToSymbol, kFromSymbol, kFunctions };
enum Later { kKernel, kNullStream, kFetch, kOverwrite, kLater };
const char* const kNames[] = {"hipMemcpy", "hipMemcpyDefault", "hipMemcpyDtoD", "hipMemcpy2D", "hipMemcpy3D", "hipMemcpyWithStream",
                              "hipMemcpyPeer", "hipMemcpy3DPeer", "hipMemcpyToSymbol", "hipMemcpyFromSymbol"};
const char* const kLaterNames[] = {"a kernel", "a kernel on the null stream", "a fetch", "a kernel that overwrites the source"};

struct End {
    int device;
    int* at;
};

void copy(Function function, End to, End from, hipStream_t own) {
    const size_t row = kBytes / kRows;
    switch (function) {
    case kMemcpy: HIP_CHECK(hipMemcpy(to.at, from.at, kBytes, hipMemcpyDeviceToDevice)); break;
    case kMemcpyDefault: HIP_CHECK(hipMemcpy(to.at, from.at, kBytes, hipMemcpyDefault)); break;
    case kDtoD: HIP_CHECK(hipMemcpyDtoD(reinterpret_cast<hipDeviceptr_t>(to.at), reinterpret_cast<hipDeviceptr_t>(from.at), kBytes)); break;
    case k2D: HIP_CHECK(hipMemcpy2D(to.at, row, from.at, row, row, kRows, hipMemcpyDeviceToDevice)); break;
    case k3D: {
        hipMemcpy3DParms params = {};
        params.srcPtr = make_hipPitchedPtr(from.at, row, row, kRows);
        params.dstPtr = make_hipPitchedPtr(to.at, row, row, kRows);
        params.extent = make_hipExtent(row, kRows, 1);
        params.kind = hipMemcpyDeviceToDevice;
        HIP_CHECK(hipMemcpy3D(&params));
        break;
    }
    case kWithStream: HIP_CHECK(hipMemcpyWithStream(to.at, from.at, kBytes, hipMemcpyDeviceToDevice, own)); break;
    case kPeer: HIP_CHECK(hipMemcpyPeer(to.at, to.device, from.at, from.device, kBytes)); break;
#if HIP_VERSION_MAJOR >= 7
    case k3DPeer: {
        hipMemcpy3DPeerParms params = {};
        params.srcPtr = make_hipPitchedPtr(from.at, row, row, kRows);
        params.dstPtr = make_hipPitchedPtr(to.at, row, row, kRows);
        params.srcDevice = from.device;
        params.dstDevice = to.device;
        params.extent = make_hipExtent(row, kRows, 1);
        HIP_CHECK(hipMemcpy3DPeer(&params));
        break;
    }
#endif
    case kToSymbol: HIP_CHECK(hipMemcpyToSymbol(HIP_SYMBOL(variable), from.at, kBytes, 0, hipMemcpyDeviceToDevice)); break;
    default: HIP_CHECK(hipMemcpyFromSymbol(to.at, HIP_SYMBOL(variable), kBytes, 0, hipMemcpyDeviceToDevice));
    }
}

} // namespace

int main(int argc, char** argv) {
    pair::begin("synchronous_between", argc, argv);
    int* memory[2];
    int* found[2];
    int* done[2];
    void* symbol[2];
    hipStream_t own[2];
    for (int device : {0, 1}) {
        memory[device] = pair::allocate<int>(device, kCount);
        found[device] = pair::allocate<int>(device, 2);
        done[device] = pair::allocate<int>(device, 1);
        HIP_CHECK(hipGetSymbolAddress(&symbol[device], HIP_SYMBOL(variable)));
        HIP_CHECK(hipStreamCreateWithFlags(&own[device], hipStreamNonBlocking));
    }
    int value = 0;
    for (int function = 0; function < kFunctions; function++)
        for (int destination : {0, 1})
            for (int current : {0, 1})
                for (int later = 0; later < kLater; later++) {
                    // HIP 6 does not have it.
                    if (function == k3DPeer && HIP_VERSION_MAJOR < 7) continue;
                    // A variable is that of the current device.
                    if (function == kToSymbol && current != destination) continue;
                    if (function == kFromSymbol && current == destination) continue;
                    const int source = 1 - destination;
                    End to = {destination, function == kToSymbol ? static_cast<int*>(symbol[destination]) : memory[destination]};
                    End from = {source, function == kFromSymbol ? static_cast<int*>(symbol[source]) : memory[source]};
                    const std::vector<int> values(kCount, ++value);
                    pair::enter(source);
                    HIP_CHECK(hipMemcpy(from.at, values.data(), kBytes, hipMemcpyHostToDevice));
                    pair::enter(current);
                    slow_store<<<1, 1, 0, function == kWithStream ? own[current] : nullptr>>>(done[current]);
                    HIP_CHECK(hipGetLastError());
                    copy(static_cast<Function>(function), to, from, own[current]);
                    pair::copies++;
                    pair::looks++;
                    int got[2] = {};
                    if (later == kOverwrite) {
                        pair::enter(source);
                        overwrite<<<1, kCount, 0, own[source]>>>(from.at);
                        HIP_CHECK(hipGetLastError());
                        HIP_CHECK(hipStreamSynchronize(own[source]));
                        pair::looks++;
                        pair::enter(current);
                        HIP_CHECK(hipDeviceSynchronize());
                        pair::looks++;
                    }
                    pair::enter(destination);
                    if (later == kFetch) {
                        for (int end : {0, 1})
                            HIP_CHECK(hipMemcpyAsync(&got[end], to.at + (end == 0 ? 0 : kCount - 1), sizeof(int), hipMemcpyDeviceToHost, own[destination]));
                    } else {
                        ends<<<1, 1, 0, later == kNullStream ? nullptr : own[destination]>>>(found[destination], to.at);
                        HIP_CHECK(hipGetLastError());
                        if (later == kNullStream) HIP_CHECK(hipStreamSynchronize(nullptr));
                        HIP_CHECK(hipMemcpyAsync(got, found[destination], sizeof got, hipMemcpyDeviceToHost, own[destination]));
                    }
                    HIP_CHECK(hipStreamSynchronize(own[destination]));
                    pair::looks += 2;
                    check::values_compared++;
                    if (got[0] != value || got[1] != value)
                        check::fail("%s to device %d while %d is the current one, then %s: %d and %d instead of %d", kNames[function], destination, current,
                                    kLaterNames[later], got[0], got[1], value);
                    for (int device : {0, 1}) {
                        pair::enter(device);
                        HIP_CHECK(hipDeviceSynchronize());
                        pair::looks++;
                    }
                    if (function == 1 && later == 0 && destination == 1 && current == 1) pair::middle();
                }
    for (int device : {0, 1}) {
        pair::enter(device);
        HIP_CHECK(hipStreamDestroy(own[device]));
        for (int* all : {memory[device], found[device], done[device]}) HIP_CHECK(hipFree(all));
    }
    return pair::finish();
}
