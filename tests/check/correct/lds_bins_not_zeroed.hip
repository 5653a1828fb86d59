// check: correct
#include "program.h"

__global__ void bins_of(const int* in, int* out) {
    __shared__ int bins[64];
    int i = threadIdx.x;
    bins[i] = 0;
    __syncthreads();
    atomicAdd(&bins[in[i] & 63], 1);
    __syncthreads();
    if (bins[i] > 0)
        out[i] = 1;
}

int main() {
    int *in = zeros<int>(64), *out = zeros<int>(64);
    bins_of<<<1, 64>>>(in, out);
    return finish(in, out);
}
