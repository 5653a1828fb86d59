// Kernels of which it can be worked out by hand what they do.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <cstdio>

// 1,024 neighbours each: 16 waves, of which each touches two lines of 128 bytes to load and two to store.
__global__ void copy(const int *in, int *out) {
    int i = blockIdx.x * 256 + threadIdx.x;
    out[i] = in[i];
}

// Each lane has a cache line of its own to load from.
__global__ void strided(const int *in, int *out) { out[threadIdx.x] = in[threadIdx.x * 32]; }

// 64 lanes of 16 bytes: eight lines.
__global__ void wide(const int4 *in, int4 *out) { out[threadIdx.x] = in[threadIdx.x]; }

// A multiplication and an addition each. The last of 16 waves has 40 threads that go on.
__global__ void saxpy(float a, const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = fmaf(a, x[i], y[i]);
}

__global__ void doubles(const double *in, double *out) {
    double x = in[threadIdx.x];
    out[threadIdx.x] = fma(x, x, 1.0) * x;
}

__global__ void halves(const __half2 *in, __half2 *out) {
    __half2 x = in[threadIdx.x];
    out[threadIdx.x] = __hfma2(x, x, x);
}

// Words of neighbours are in different banks: 32 lanes in a cycle.
__global__ void neighbours(int *out) {
    __shared__ int words[64];
    words[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = words[threadIdx.x ^ 1];
}

// All words are in one bank: a lane in a cycle.
__global__ void one_bank(int *out) {
    __shared__ int words[64 * 32];
    words[threadIdx.x * 32] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = words[(threadIdx.x ^ 1) * 32];
}

// Stored without conflicts, in two cycles; then all load the same word, which they share: two cycles.
__global__ void shared_word(int *out) {
    __shared__ int words[64];
    words[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = words[out[64]];
}

// 16 lanes of 8 bytes in a cycle.
__global__ void pairs(long long *out) {
    __shared__ long long words[64];
    words[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = words[threadIdx.x ^ 1];
}

// Of 32 lanes 16 change each of two words, one after the other.
__global__ void counters(int *out) {
    __shared__ int words[2];
    if (threadIdx.x < 2) words[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&words[threadIdx.x & 1], static_cast<int>(threadIdx.x * 3));
    __syncthreads();
    if (threadIdx.x < 2) out[threadIdx.x] = words[threadIdx.x];
}

// Four words of one line, for 256 threads.
__global__ void histogram(int *out) { atomicAdd(&out[threadIdx.x & 3], static_cast<int>(threadIdx.x)); }

// Every second lane of each wave.
__global__ void divided(int *out) {
    int x = threadIdx.x;
    if (threadIdx.x & 1) asm volatile("v_bfrev_b32 %0, %0" : "+v"(x));
    out[threadIdx.x] = x;
}

// Lane n goes round n times: in one wave 63 rounds with 63, 62 and at last one lane.
__global__ void rounds(int *out) {
    int x = threadIdx.x;
    for (unsigned n = 0; n < threadIdx.x; n++) asm volatile("v_bfrev_b32 %0, %0" : "+v"(x));
    out[threadIdx.x] = x;
}

// One product of 32x8 and 8x32 numbers for each wave.
__global__ void product(float *out) {
    using Half4 = __attribute__((__vector_size__(4 * sizeof(_Float16)))) _Float16;
    using Float16 = __attribute__((__vector_size__(16 * sizeof(float)))) float;
    Half4 a = {1, 2, 3, 4};
    Float16 c = {};
    c = __builtin_amdgcn_mfma_f32_32x32x8f16(a, a, c, 0, 0, 0);
    out[threadIdx.x] = c[0] ;
}

// A block has more than half of a compute unit's LDS.
__global__ void large(int *out) {
    __shared__ int words[9000];
    words[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = words[threadIdx.x ^ 1];
}

int main() {
    void *in = nullptr, *out = nullptr;
    (void)hipMalloc(&in, 1 << 20);
    (void)hipMalloc(&out, 1 << 20);
    (void)hipMemset(in, 0, 1 << 20);
    (void)hipMemset(out, 0, 1 << 20);
    copy<<<4, 256>>>(static_cast<int *>(in), static_cast<int *>(out));
    strided<<<1, 256>>>(static_cast<int *>(in), static_cast<int *>(out));
    wide<<<1, 64>>>(static_cast<int4 *>(in), static_cast<int4 *>(out));
    saxpy<<<4, 256>>>(2, static_cast<float *>(in), static_cast<float *>(out), 1000);
    doubles<<<1, 128>>>(static_cast<double *>(in), static_cast<double *>(out));
    halves<<<1, 64>>>(static_cast<__half2 *>(in), static_cast<__half2 *>(out));
    (void)hipMemset(out, 0, 1 << 20);
    neighbours<<<1, 64>>>(static_cast<int *>(out));
    one_bank<<<1, 64>>>(static_cast<int *>(out));
    shared_word<<<1, 64>>>(static_cast<int *>(out));
    pairs<<<1, 64>>>(static_cast<long long *>(out));
    counters<<<1, 64>>>(static_cast<int *>(out));
    histogram<<<1, 256>>>(static_cast<int *>(out));
    divided<<<1, 128>>>(static_cast<int *>(out));
    rounds<<<1, 64>>>(static_cast<int *>(out));
    product<<<1, 128>>>(static_cast<float *>(out));
    large<<<1, 128>>>(static_cast<int *>(out));
    large<<<3, 128>>>(static_cast<int *>(out));
    puts(hipDeviceSynchronize() == hipSuccess ? "done" : "failed");
    return 0;
}
