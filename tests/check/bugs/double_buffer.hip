// check: kind=block-race kernel=pipeline
#include "seed.h"

__global__ void pipeline(int *out, const int *in, int rounds) {
    __shared__ int tile[2][128];
    int sum = 0;
    tile[0][threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    for (int round = 0; round < rounds; ++round) {
        tile[0][threadIdx.x] = in[threadIdx.x] + round; // BUG
        sum += tile[round % 2 == 0 ? 0 : 1][127 - threadIdx.x];
        tile[1][threadIdx.x] = sum;
        __syncthreads();
    }
    out[threadIdx.x] = sum;
}
int main() {
    int *out = device<int>(128), *in = device(numbers(128));
    pipeline<<<1, 128>>>(out, in, 1);
    return end(out);
}
