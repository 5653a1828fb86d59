// check: kind=uninitialized-read kernel=accumulate
#include "seed.h"

__global__ void accumulate(int *out, const int *in) {
    __shared__ int sums[64];
    sums[threadIdx.x] += in[threadIdx.x]; // BUG
    __syncthreads();
    out[threadIdx.x] = sums[63 - threadIdx.x];
}
int main() {
    int *out = device<int>(64), *in = device(numbers(64));
    accumulate<<<1, 64>>>(out, in);
    return end(out);
}
