// check: correct
#include "program.h"

__global__ void last_index(int* out) {
    __shared__ int last;
    if (threadIdx.x == 63) last = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = last;
}

int main() {
    int* out = raw<int>(64);
    last_index<<<1, 64>>>(out);
    return finish(out);
}
