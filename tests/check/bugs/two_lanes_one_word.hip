// check: kind=block-race kernel=last_index
#include "program.h"

__global__ void last_index(int* out) {
    __shared__ int last;
    last = threadIdx.x; // BUG
    __syncthreads();
    out[threadIdx.x] = last;
}

int main() {
    int* out = raw<int>(64);
    last_index<<<1, 64>>>(out);
    return finish(out);
}
