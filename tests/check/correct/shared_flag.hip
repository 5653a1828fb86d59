// check: correct
#include "program.h"

__global__ void any_set(const int* in, int* out) {
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    if (in[threadIdx.x] == 0)
        atomicAdd(&count, 1);
    __syncthreads();
    if (threadIdx.x == 0) *out = count;
}

int main() {
    int *in = zeros<int>(256), *out = raw<int>(1);
    any_set<<<1, 256>>>(in, out);
    return finish(in, out);
}
