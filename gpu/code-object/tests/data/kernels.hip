// Device code whose metadata shows each kind of argument and symbol that the tests ask for.
#include <hip/hip_runtime.h>

struct Record {
    double x, y;
    int z;
};

__device__ int counter = 7;
__device__ float table[300];
__constant__ float scale[4] = {1, 2, 3, 4};
// Its initial value is an address: a relocation.
__device__ float *first = table;

extern "C" {
__global__ void saxpy(int n, float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

__global__ void mixed(Record r, char c, short s, long l, double *out) {
    out[threadIdx.x] = r.x * c + r.y * s + r.z * l;
}

__global__ void globals(float *out) {
    out[threadIdx.x] = first[threadIdx.x] * scale[threadIdx.x & 3] + atomicAdd(&counter, 1);
}

__global__ void __launch_bounds__(64) local_memory(float *data) {
    __shared__ float tile[64];
    extern __shared__ float more[];
    tile[threadIdx.x] = data[threadIdx.x];
    more[threadIdx.x] = data[threadIdx.x + 64];
    __syncthreads();
    data[threadIdx.x] = tile[63 - threadIdx.x] + more[63 - threadIdx.x] + blockDim.y + gridDim.z;
}

__global__ void prints(int n) {
    if (threadIdx.x == 0) printf("n is %d\n", n);
}

__global__ void nothing() {}
}

__device__ __attribute__((noinline)) int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
extern "C" __global__ void recursion(int *out) { out[0] = fib(out[0]); }
