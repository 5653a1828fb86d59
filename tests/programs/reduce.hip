// Sums, minima and maxima: a tree in LDS, then one atomic a block; several block sizes; a second pass instead of atomics.
#include "check.h"

extern "C" __global__ void reduce_sum_u32(const unsigned* x, unsigned* total, unsigned n) {
    __shared__ unsigned partial[256];
    unsigned sum = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(total, partial[0]);
}

// One partial sum a block: to be called again on the partial sums.
extern "C" __global__ void reduce_sum_f32(const float* x, float* sums, unsigned n) {
    __shared__ float partial[256];
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    partial[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half >>= 1) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = partial[0];
}

extern "C" __global__ void reduce_minmax_i32(const int* x, int* minmax, unsigned n) {
    __shared__ int low, high;
    if (threadIdx.x == 0) {
        low = x[0];
        high = x[0];
    }
    __syncthreads();
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicMin(&low, x[i]);
        atomicMax(&high, x[i]);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicMin(&minmax[0], low);
        atomicMax(&minmax[1], high);
    }
}

int main() {
    check::begin("reduce");
    check::Rng rng(3);
    const unsigned n = 20000;

    std::vector<unsigned> x = rng.bits<unsigned>(n);
    unsigned want = 0;
    for (unsigned v : x) want += v;
    DeviceArray<unsigned> dx(x), total(1);
    for (unsigned threads : {32u, 64u, 128u, 256u}) {
        total.fill_bytes(0);
        reduce_sum_u32<<<13, threads>>>(dx.get(), total.get(), n);
        HIP_CHECK(hipGetLastError());
        check::equal("sum of u32", total.download(), {want});
    }

    std::vector<float> f = rng.reals<float>(n, -1, 1);
    double wantf = 0;
    for (float v : f) wantf += v;
    unsigned blocks = (n + 255) / 256;
    DeviceArray<float> df(f), sums(blocks), result(1);
    reduce_sum_f32<<<blocks, 256>>>(df.get(), sums.get(), n);
    reduce_sum_f32<<<1, 256>>>(sums.get(), result.get(), blocks);
    HIP_CHECK(hipGetLastError());
    check::near("sum of f32", result.download(), std::vector<double>{wantf}, 1e-5, 1e-3);

    std::vector<int> s = rng.bits<int>(n);
    DeviceArray<int> ds(s), minmax(std::vector<int>{INT32_MAX, INT32_MIN});
    reduce_minmax_i32<<<5, 256>>>(ds.get(), minmax.get(), n);
    HIP_CHECK(hipGetLastError());
    check::equal("min and max", minmax.download(), {*std::min_element(s.begin(), s.end()), *std::max_element(s.begin(), s.end())});
    return check::finish();
}
