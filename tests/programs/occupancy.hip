// What the library says about kernels, and what it advises: attributes, occupancy, block sizes; the advice is followed.
#include "check.h"

extern "C" __global__ void plain(int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = i * 2;
}

extern "C" __global__ void with_lds(int* out) {
    __shared__ int values[2048]; // 8 KiB
    for (int i = threadIdx.x; i < 2048; i += blockDim.x) values[i] = i;
    __syncthreads();
    out[threadIdx.x] = values[(threadIdx.x * 37) & 2047];
}

extern "C" __global__ void __launch_bounds__(128) bounded(int* out) { out[threadIdx.x] = 1; }

extern "C" __global__ void with_scratch(const int* in, int* out) {
    int values[100];
    for (int i = 0; i < 100; i++) values[i] = in[i] + static_cast<int>(threadIdx.x);
    int at = 0;
    for (int i = 0; i < 10; i++) at = values[(at + in[i]) % 100] % 100;
    out[threadIdx.x] = at;
}

extern "C" __global__ void with_dynamic_lds(int* out) {
    extern __shared__ int values[];
    values[threadIdx.x] = static_cast<int>(threadIdx.x);
    __syncthreads();
    out[threadIdx.x] = values[blockDim.x - 1 - threadIdx.x];
}

int main() {
    check::begin("occupancy");
    hipFuncAttributes a = {};
    HIP_CHECK(hipFuncGetAttributes(&a, reinterpret_cast<const void*>(plain)));
    EXPECT(a.maxThreadsPerBlock == 1024 && a.sharedSizeBytes == 0 && a.numRegs > 0 && a.numRegs <= 512);
    HIP_CHECK(hipFuncGetAttributes(&a, reinterpret_cast<const void*>(with_lds)));
    EXPECT(a.sharedSizeBytes == 8192);
    HIP_CHECK(hipFuncGetAttributes(&a, reinterpret_cast<const void*>(bounded)));
    EXPECT(a.maxThreadsPerBlock == 128);
    HIP_CHECK(hipFuncGetAttributes(&a, reinterpret_cast<const void*>(with_scratch)));
    EXPECT(a.localSizeBytes >= 400);

    int blocks = 0;
    HIP_CHECK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 256, 0));
    EXPECT(blocks >= 1 && blocks <= 32);
    int limited = 0;
    HIP_CHECK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&limited, plain, 256, 32768));
    EXPECT(limited >= 1 && limited <= 2 && limited <= blocks);
    HIP_CHECK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&limited, with_lds, 64, 0));
    EXPECT(limited >= 1 && limited <= 8); // 64 KiB of LDS, 8 KiB each
    HIP_CHECK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&limited, plain, 1024, 0));
    EXPECT(limited >= 1 && limited <= 2); // 2048 threads

    int grid = 0, block = 0;
    HIP_CHECK(hipOccupancyMaxPotentialBlockSize(&grid, &block, plain, 0, 0));
    EXPECT(grid >= 1 && block >= 64 && block <= 1024 && block % 64 == 0);
    const int n = 3000;
    DeviceArray<int> out(n);
    std::vector<int> want(n);
    for (int i = 0; i < n; i++) want[i] = i * 2;
    if (block > 0) {
        plain<<<(n + block - 1) / block, block>>>(out.get(), n);
        HIP_CHECK(hipGetLastError());
        check::equal("advised block size", out.download(), want);
    }
    HIP_CHECK(hipOccupancyMaxPotentialBlockSize(&grid, &block, bounded, 0, 0));
    EXPECT(block >= 64 && block <= 1024 && block % 64 == 0); // launch bounds do not count
    HIP_CHECK(hipOccupancyMaxPotentialBlockSize(&grid, &block, bounded, 0, 100));
    EXPECT(block == 128); // whole waves

    // More dynamic LDS than the default is asked for first.
    HIP_CHECK(hipFuncSetAttribute(reinterpret_cast<const void*>(with_dynamic_lds), hipFuncAttributeMaxDynamicSharedMemorySize, 65536));
    with_dynamic_lds<<<1, 1024, 65536>>>(out.get());
    HIP_CHECK(hipGetLastError());
    std::vector<int> got = out.download();
    got.resize(1024);
    std::vector<int> reversed(1024);
    for (int i = 0; i < 1024; i++) reversed[i] = 1023 - i;
    check::equal("all of LDS", got, reversed);
    EXPECT_ERROR(hipFuncSetAttribute(reinterpret_cast<const void*>(with_lds), hipFuncAttributeMaxDynamicSharedMemorySize, 65536), hipErrorInvalidValue);
    (void)hipGetLastError();
    HIP_CHECK(hipFuncSetCacheConfig(reinterpret_cast<const void*>(plain), hipFuncCachePreferL1));

    std::vector<int> in(100);
    for (int i = 0; i < 100; i++) in[i] = (i * 7) % 50;
    std::vector<int> scratch_want(64);
    for (int t = 0; t < 64; t++) {
        int at = 0;
        for (int i = 0; i < 10; i++) at = (in[(at + in[i]) % 100] + t) % 100;
        scratch_want[t] = at;
    }
    DeviceArray<int> din(in), dat(64);
    with_scratch<<<1, 64>>>(din.get(), dat.get());
    HIP_CHECK(hipGetLastError());
    check::equal("scratch", dat.download(), scratch_want);
    return check::finish();
}
