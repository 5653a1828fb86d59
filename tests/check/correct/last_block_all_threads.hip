// check: correct
#include "seed.h"

__global__ void sum(int *out, int *parts, unsigned *done) {
    __shared__ bool is_last;
    parts[blockIdx.x * blockDim.x + threadIdx.x] = 1;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) is_last = atomicAdd(done, 1u) == gridDim.x - 1;
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    int total = 0;
    for (unsigned i = threadIdx.x; i < gridDim.x * blockDim.x; i += blockDim.x) total += parts[i];
    atomicAdd(out, total);
}
int main() {
    int *out = device(std::vector<int>(1)), *parts = device<int>(1024);
    unsigned *done = device(std::vector<unsigned>(1));
    sum<<<8, 128>>>(out, parts, done);
    return pass(host(out, 1)[0] == 1024);
}
