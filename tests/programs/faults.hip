// Kernels that touch what is not theirs: the error comes with the next wait, once, names a code, and the device can be used again.
// (With a real driver such a fault ends the process; a remote or emulated device reports it.)
#include "check.h"

extern "C" __global__ void write_at(unsigned long long address, int value) { *reinterpret_cast<int*>(address + threadIdx.x * 4ull) = value; }

extern "C" __global__ void read_at(unsigned long long address, int* out) { out[threadIdx.x] = *reinterpret_cast<const int*>(address + threadIdx.x * 4ull); }

extern "C" __global__ void write_one_lane(int* data, unsigned long long bad, int lane) {
    int* p = static_cast<int>(threadIdx.x) == lane ? reinterpret_cast<int*>(bad) : data + threadIdx.x;
    *p = 9;
}

extern "C" __global__ void trap_if(int* data, int value) {
    if (data[threadIdx.x] == value) __builtin_trap();
    data[threadIdx.x] = 7;
}

extern "C" __global__ void fill_with(int* data, int value) { data[threadIdx.x] = value; }

static void expect_fault(hipError_t got, const char* what) {
    if (got != hipErrorIllegalAddress) check::fail("%s: %s instead of hipErrorIllegalAddress", what, hipGetErrorName(got));
    (void)hipGetLastError();
}

// After a fault: no error is left, and kernels run.
static void still_works(DeviceArray<int>& data, int value) {
    HIP_CHECK(hipDeviceSynchronize());
    fill_with<<<1, 64>>>(data.get(), value);
    HIP_CHECK(hipGetLastError());
    check::equal("after a fault", data.download(), std::vector<int>(64, value));
}

int main() {
    check::begin("faults");
    DeviceArray<int> data(std::vector<int>(64, 3));
    const unsigned long long wild = 0x123456789000ull, own = reinterpret_cast<unsigned long long>(data.get());

    write_at<<<1, 64>>>(wild, 1);
    HIP_CHECK(hipGetLastError()); // the launch itself is fine
    expect_fault(hipDeviceSynchronize(), "write");
    still_works(data, 10);

    read_at<<<1, 64>>>(wild, data.get());
    expect_fault(hipDeviceSynchronize(), "read");
    still_works(data, 11);

    write_at<<<1, 64>>>(0, 1);
    expect_fault(hipDeviceSynchronize(), "null");
    still_works(data, 12);

    // Far past the end of an allocation, by one lane.
    write_one_lane<<<1, 64>>>(data.get(), own + (1ull << 36), 17);
    expect_fault(hipDeviceSynchronize(), "past the end");
    still_works(data, 13);

    // Freed memory.
    int* freed = nullptr;
    HIP_CHECK(hipMalloc(reinterpret_cast<void**>(&freed), 8 << 20));
    HIP_CHECK(hipFree(freed));
    write_at<<<1, 64>>>(reinterpret_cast<unsigned long long>(freed) + (4 << 20), 1);
    expect_fault(hipDeviceSynchronize(), "freed");
    still_works(data, 14);

    // On a stream of its own: waiting for it reports the fault.
    hipStream_t stream;
    HIP_CHECK(hipStreamCreate(&stream));
    write_at<<<1, 64, 0, stream>>>(wild, 1);
    expect_fault(hipStreamSynchronize(stream), "on a stream");
    HIP_CHECK(hipStreamDestroy(stream));
    still_works(data, 15);

    // A copy to the host waits too.
    std::vector<int> host(64);
    write_at<<<1, 64>>>(wild, 1);
    expect_fault(hipMemcpy(host.data(), data.get(), 64 * sizeof(int), hipMemcpyDeviceToHost), "seen by a copy");
    still_works(data, 16);

    // A trap is another error.
    trap_if<<<1, 64>>>(data.get(), 16);
    EXPECT(hipDeviceSynchronize() != hipSuccess);
    (void)hipGetLastError();
    still_works(data, 17);
    return check::finish();
}
