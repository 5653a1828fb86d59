// check: correct
#include "program.h"

__global__ void reduce(const int* in, int* out) {
    __shared__ int sums[4];
    int value = in[threadIdx.x];
    for (int by = 32; by > 0; by /= 2) value += __shfl_down(value, by);
    if (threadIdx.x % 64 == 0) sums[threadIdx.x / 64] = value;
    __syncthreads();
    if (threadIdx.x < 64) {
        value = threadIdx.x < 4 ? sums[threadIdx.x] : 0;
        value += __shfl_xor(value, 1);
        value += __shfl_xor(value, 2);
        if (threadIdx.x == 0) *out = value;
    }
}

int main() {
    int *in = zeros<int>(256), *out = raw<int>(1);
    reduce<<<1, 256>>>(in, out);
    return finish(in, out);
}
