// check: kind=block-race kernel=stage
#include "seed.h"

__global__ void stage(int *out, const int *in) {
    __shared__ int tile[256];
    __syncthreads();
    tile[threadIdx.x ^ 64] = in[threadIdx.x];
    out[threadIdx.x] = tile[threadIdx.x]; // BUG
}
int main() {
    int *out = device<int>(256), *in = device(numbers(256));
    stage<<<1, 256>>>(out, in);
    return end(out);
}
