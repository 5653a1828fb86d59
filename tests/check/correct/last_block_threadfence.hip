// check: correct
#include "program.h"

__global__ void sum_all(const int* in, int* partial, unsigned* ticket, int* out) {
    __shared__ bool is_last;
    int i = threadIdx.x, value = in[blockIdx.x * 64 + i];
    for (int by = 32; by > 0; by /= 2) value += __shfl_down(value, by);
    if (i == 0) {
        partial[blockIdx.x] = value;
        __threadfence();
        is_last = atomicAdd(ticket, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    value = i < static_cast<int>(gridDim.x) ? partial[i] : 0;
    for (int by = 32; by > 0; by /= 2) value += __shfl_down(value, by);
    if (i == 0) *out = value;
}

int main() {
    int *in = zeros<int>(1024), *partial = raw<int>(16), *out = raw<int>(1);
    unsigned* ticket = zeros<unsigned>(1);
    sum_all<<<16, 64>>>(in, partial, ticket, out);
    return finish(in, partial, ticket, out);
}
