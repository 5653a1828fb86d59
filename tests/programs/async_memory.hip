// Memory from the stream-ordered allocator: used in order, freed in order while kernels still wait, reused.
#include "check.h"

extern "C" __global__ void iota(unsigned* out, unsigned first, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = first + i;
}

extern "C" __global__ void sum_into(const unsigned* in, unsigned long long* total, unsigned n) {
    unsigned long long sum = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
    atomicAdd(total, sum);
}

int main() {
    check::begin("async_memory");
    hipStream_t stream;
    HIP_CHECK(hipStreamCreate(&stream));
    DeviceArray<unsigned long long> total(1);
    total.fill_bytes(0);
    HIP_CHECK(hipDeviceSynchronize());
    unsigned long long want = 0;
    for (unsigned round = 0; round < 10; round++) {
        unsigned n = 1000 + 500 * round;
        unsigned* temporary = nullptr;
        HIP_CHECK(hipMallocAsync(reinterpret_cast<void**>(&temporary), n * sizeof(unsigned), stream));
        EXPECT(temporary != nullptr);
        iota<<<(n + 255) / 256, 256, 0, stream>>>(temporary, round, n);
        sum_into<<<4, 64, 0, stream>>>(temporary, total.get(), n);
        HIP_CHECK(hipFreeAsync(temporary, stream));
        for (unsigned i = 0; i < n; i++) want += round + i;
    }
    HIP_CHECK(hipStreamSynchronize(stream));
    check::equal("total", total.download(), {want});
    HIP_CHECK(hipStreamDestroy(stream));
    return check::finish();
}
