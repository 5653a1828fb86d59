// LDS whose size the launch gives: several sizes up to 64 KiB, several types in it, together with static LDS, and what blocks may not share.
#include "check.h"

// Reverses each block's values.
extern "C" __global__ void reverse_blocks(const int* in, int* out) {
    extern __shared__ int values[];
    unsigned base = blockIdx.x * blockDim.x;
    values[threadIdx.x] = in[base + threadIdx.x];
    __syncthreads();
    out[base + threadIdx.x] = values[blockDim.x - 1 - threadIdx.x];
}

// Three arrays in one allocation: `count` doubles, ints and bytes.
extern "C" __global__ void three_arrays(double* out, unsigned count) {
    extern __shared__ double storage[];
    int* ints = reinterpret_cast<int*>(storage + count);
    unsigned char* bytes = reinterpret_cast<unsigned char*>(ints + count);
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
        storage[i] = 0.5 * i;
        ints[i] = -static_cast<int>(i);
        bytes[i] = static_cast<unsigned char>(i * 7);
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) out[i] = storage[count - 1 - i] + ints[(i + 1) % count] + bytes[i ^ 1];
}

extern "C" __global__ void static_and_dynamic(const unsigned* in, unsigned* out, unsigned words) {
    __shared__ unsigned totals[4];
    extern __shared__ unsigned buffer[];
    if (threadIdx.x < 4) totals[threadIdx.x] = 0;
    for (unsigned i = threadIdx.x; i < words; i += blockDim.x) buffer[i] = in[i] ^ blockIdx.x;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < words; i += blockDim.x) atomicAdd(&totals[i & 3], buffer[words - 1 - i]);
    __syncthreads();
    if (threadIdx.x < 4) out[blockIdx.x * 4 + threadIdx.x] = totals[threadIdx.x];
}

// The size, as the kernel sees it.
extern "C" __global__ void lds_size(unsigned* out) {
    extern __shared__ unsigned char bytes[];
    bytes[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 0) *out = __builtin_amdgcn_groupstaticsize();
}

int main() {
    check::begin("dynamic_lds");
    check::Rng rng(14);
    for (unsigned threads : {64u, 100u, 256u, 1024u}) {
        std::vector<int> in = rng.bits<int>(4 * threads), want(in.size());
        for (unsigned b = 0; b < 4; b++)
            for (unsigned t = 0; t < threads; t++) want[b * threads + t] = in[b * threads + threads - 1 - t];
        DeviceArray<int> din(in), dout(in.size());
        reverse_blocks<<<4, threads, threads * sizeof(int)>>>(din.get(), dout.get());
        HIP_CHECK(hipGetLastError());
        check::equal("reversed", dout.download(), want);
    }
    {
        const unsigned count = 500;
        std::vector<double> want(count);
        for (unsigned i = 0; i < count; i++) want[i] = 0.5 * (count - 1 - i) - static_cast<int>((i + 1) % count) + static_cast<unsigned char>((i ^ 1) * 7);
        DeviceArray<double> dout(count);
        three_arrays<<<1, 128, count * 13>>>(dout.get(), count);
        HIP_CHECK(hipGetLastError());
        check::equal("three arrays", dout.download(), want);
    }
    for (unsigned bytes : {1024u, 20000u, 65536u - 16u}) {
        unsigned words = bytes / 4;
        std::vector<unsigned> in = rng.bits<unsigned>(words), want(12);
        for (unsigned b = 0; b < 3; b++)
            for (unsigned i = 0; i < words; i++) want[4 * b + (i & 3)] += in[words - 1 - i] ^ b;
        DeviceArray<unsigned> din(in), dout(12);
        static_and_dynamic<<<3, 256, bytes>>>(din.get(), dout.get(), words);
        HIP_CHECK(hipGetLastError());
        check::equal("static and dynamic", dout.download(), want);
    }
    {
        DeviceArray<unsigned> dout(std::vector<unsigned>{7});
        lds_size<<<1, 64, 64>>>(dout.get());
        HIP_CHECK(hipGetLastError());
        check::equal("static size", dout.download(), {0u});
        // More than a block can have.
        lds_size<<<1, 64, 65537>>>(dout.get());
        EXPECT(hipGetLastError() != hipSuccess);
    }
    return check::finish();
}
