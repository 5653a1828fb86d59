// check: correct
#include "seed.h"

__global__ void pipeline(int *out, const int *in, int rounds) {
    __shared__ int tile[2][128];
    int sum = 0;
    tile[0][threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    for (int round = 0; round < rounds; ++round) {
        if (round + 1 < rounds) tile[(round + 1) % 2][threadIdx.x] = in[(round + 1) * 128 + threadIdx.x];
        sum += tile[round % 2][127 - threadIdx.x];
        __syncthreads();
    }
    out[threadIdx.x] = sum;
}
int main() {
    int *out = device<int>(128), *in = device(numbers(512));
    pipeline<<<1, 128>>>(out, in, 4);
    return pass(host(out, 128)[127] == 0 + 128 + 256 + 384);
}
