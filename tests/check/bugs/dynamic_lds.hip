// check: kind=out-of-bounds kernel=exchange
#include "seed.h"

__global__ void exchange(int *out) {
    extern __shared__ int tile[];
    tile[threadIdx.x] = threadIdx.x; // BUG
    __syncthreads();
    out[threadIdx.x] = tile[blockDim.x / 2 - 1 - threadIdx.x % (blockDim.x / 2)];
}
int main() {
    int *out = device<int>(128);
    exchange<<<1, 128, 127 * sizeof(int)>>>(out);
    return end(out);
}
