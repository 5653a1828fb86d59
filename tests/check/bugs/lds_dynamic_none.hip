// check: kind=out-of-bounds kernel=histogram
#include "program.h"

__global__ void histogram(const unsigned char* in, unsigned* out) {
    extern __shared__ unsigned bins[];
    int i = threadIdx.x;
    bins[i] = 0; // BUG
    __syncthreads();
    atomicAdd(&bins[in[i] & 63], 1u);
    __syncthreads();
    out[i] = bins[i];
}

int main() {
    unsigned char* in = zeros<unsigned char>(64);
    unsigned* out = raw<unsigned>(64);
    histogram<<<1, 64, 0>>>(in, out);
    return finish(in, out);
}
