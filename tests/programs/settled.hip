// After a call that HIP says is synchronous, queries say "done" of what came before it, whatever the call itself waits for: copies from and to
// the host, sets of memory that the host can see, frees; streams and events, the legacy stream and blocking ones.
#include <functional>

#include "check.h"

extern "C" __global__ void keep_busy(volatile unsigned* sink, int rounds) {
    for (int i = 0; i < rounds; i++) *sink = *sink + 1;
}

int main() {
    check::begin("settled");
    const size_t bytes = 4096;
    DeviceArray<unsigned char> device(bytes), sink(sizeof(unsigned));
    sink.fill_bytes(0);
    std::vector<unsigned char> pageable(bytes), other(bytes), registered(bytes);
    void *pinned, *managed, *of_registered;
    HIP_CHECK(hipHostMalloc(&pinned, bytes, 0));
    HIP_CHECK(hipMallocManaged(&managed, bytes));
    HIP_CHECK(hipHostRegister(registered.data(), bytes, 0));
    HIP_CHECK(hipHostGetDevicePointer(&of_registered, registered.data(), 0));

    struct Call {
        const char* name;
        std::function<hipError_t(hipStream_t)> make;
        bool has_stream = false;
    };
    std::vector<Call> calls = {
        {"hipMemcpy from pageable memory", [&](hipStream_t) { return hipMemcpy(device.get(), pageable.data(), bytes, hipMemcpyHostToDevice); }},
        {"hipMemcpy from pinned memory", [&](hipStream_t) { return hipMemcpy(device.get(), pinned, bytes, hipMemcpyHostToDevice); }},
        {"hipMemcpy to pageable memory", [&](hipStream_t) { return hipMemcpy(pageable.data(), device.get(), bytes, hipMemcpyDeviceToHost); }},
        {"hipMemcpy to pinned memory", [&](hipStream_t) { return hipMemcpy(pinned, device.get(), bytes, hipMemcpyDeviceToHost); }},
        {"hipMemcpy within the host", [&](hipStream_t) { return hipMemcpy(other.data(), pageable.data(), bytes, hipMemcpyHostToHost); }},
        {"hipMemcpy2D", [&](hipStream_t) { return hipMemcpy2D(device.get(), 64, pageable.data(), 32, 32, 64, hipMemcpyHostToDevice); }},
        {"hipMemcpyHtoD", [&](hipStream_t) { return hipMemcpyHtoD(reinterpret_cast<hipDeviceptr_t>(device.get()), pageable.data(), bytes); }},
        {"hipMemcpyWithStream", [&](hipStream_t s) { return hipMemcpyWithStream(device.get(), pageable.data(), bytes, hipMemcpyHostToDevice, s); }, true},
        {"hipFree",
         [&](hipStream_t) {
             void* memory;
             HIP_CHECK(hipMalloc(&memory, 64));
             return hipFree(memory);
         }},
    };
    for (void* memory : {pinned, managed, static_cast<void*>(registered.data()), of_registered}) {
        calls.push_back({"hipMemset", [=](hipStream_t) { return hipMemset(memory, 1, bytes); }});
        calls.push_back({"hipMemsetD16", [=](hipStream_t) { return hipMemsetD16(reinterpret_cast<hipDeviceptr_t>(memory), 2, bytes / 2); }});
        calls.push_back({"hipMemset2D", [=](hipStream_t) { return hipMemset2D(memory, 64, 3, 32, 64); }});
        calls.push_back({"hipMemset3D", [=](hipStream_t) { return hipMemset3D(make_hipPitchedPtr(memory, 64, 32, 8), 4, make_hipExtent(32, 8, 8)); }});
    }
    hipStream_t blocking, second;
    hipEvent_t before, event;
    HIP_CHECK(hipStreamCreate(&blocking));
    HIP_CHECK(hipStreamCreate(&second));
    HIP_CHECK(hipEventCreate(&before));
    HIP_CHECK(hipEventCreate(&event));
    for (int round = 0; round < 2; round++) // In the second, kernels know all of the memory.
        for (const Call& call : calls)
            for (hipStream_t busy : {hipStream_t(nullptr), blocking}) {
                HIP_CHECK(hipEventRecord(before, busy));
                keep_busy<<<1, 1, 0, busy>>>(reinterpret_cast<unsigned*>(sink.get()), 3000);
                HIP_CHECK(hipEventRecord(event, busy));
                hipError_t made = call.make(busy);
                hipError_t of_event = hipEventQuery(event), of_stream = hipStreamQuery(busy), of_null = hipStreamQuery(nullptr), of_second = hipStreamQuery(second);
                float ms = -1;
                hipError_t of_time = hipEventElapsedTime(&ms, before, event);
                if (made || of_event || of_stream || of_null || of_second || of_time)
                    check::fail("%s, %s stream, round %d: %d; event %d, stream %d, null stream %d, another stream %d, time %d", call.name, busy ? "blocking" : "null", round, made,
                                of_event, of_stream, of_null, of_second, of_time);
                check::values_compared += 6;
                HIP_CHECK(hipDeviceSynchronize());
            }
    // What is put on a stream afterwards is not done by that: a query that said so would be wrong, one that waited would never end.
    HIP_CHECK(hipMemcpy(device.get(), pageable.data(), bytes, hipMemcpyHostToDevice));
    static bool go = false;
    HIP_CHECK(hipLaunchHostFunc(blocking, [](void* flag) { while (!*static_cast<volatile bool*>(flag)) {} }, &go));
    EXPECT_ERROR(hipStreamQuery(blocking), hipErrorNotReady);
    HIP_CHECK(hipEventRecord(event, blocking));
    EXPECT_ERROR(hipEventQuery(event), hipErrorNotReady);
    *static_cast<volatile bool*>(&go) = true;
    HIP_CHECK(hipStreamSynchronize(blocking));

    HIP_CHECK(hipEventDestroy(before));
    HIP_CHECK(hipEventDestroy(event));
    HIP_CHECK(hipStreamDestroy(second));
    HIP_CHECK(hipStreamDestroy(blocking));
    HIP_CHECK(hipHostUnregister(registered.data()));
    HIP_CHECK(hipFree(managed));
    HIP_CHECK(hipHostFree(pinned));
    return check::finish();
}
