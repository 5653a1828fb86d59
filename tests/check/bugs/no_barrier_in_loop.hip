// check: kind=block-race kernel=tiles
#include "seed.h"

__global__ void tiles(int *out, const int *in, int rounds) {
    __shared__ int tile[256];
    int sum = 0;
    for (int round = 0; round < rounds; ++round) {
        tile[threadIdx.x] = in[round * 256 + threadIdx.x]; // BUG
        __syncthreads();
        sum += tile[(threadIdx.x + 64) % 256];
    }
    out[threadIdx.x] = sum;
}
int main() {
    int *out = device<int>(256), *in = device(numbers(1024));
    tiles<<<1, 256>>>(out, in, 4);
    return end(out);
}
