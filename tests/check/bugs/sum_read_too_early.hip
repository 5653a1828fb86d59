// check: kind=grid-race kernel=add
#include "seed.h"

__global__ void add(int *sum, int *out, const int *in) {
    atomicAdd(sum, in[blockIdx.x * 64 + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = *sum; // BUG
}
int main() {
    int *sum = device(std::vector<int>(1)), *out = device(std::vector<int>(4)), *in = device(numbers(4 * 64));
    add<<<4, 64>>>(sum, out, in);
    return end(out);
}
