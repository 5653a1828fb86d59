// check: kind=grid-race kernel=last_block
#include "seed.h"

__global__ void last_block(int *out, int *parts, int *done) {
    __shared__ bool is_last;
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = blockIdx.x;
        is_last = atomicAdd(done, 1) == static_cast<int>(gridDim.x) - 1;
    }
    __syncthreads();
    if (is_last && threadIdx.x < gridDim.x) atomicAdd(out, parts[threadIdx.x]); // BUG
}
int main() {
    int *out = device(std::vector<int>(1)), *parts = device(std::vector<int>(16)), *done = device(std::vector<int>(1));
    last_block<<<16, 64>>>(out, parts, done);
    return end(out);
}
