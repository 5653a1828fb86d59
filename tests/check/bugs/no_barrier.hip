// check: kind=block-race kernel=turn
#include "seed.h"

__global__ void turn(int *out, const int *in) {
    __shared__ int tile[256];
    tile[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = tile[255 - threadIdx.x]; // BUG
}
int main() {
    int *out = device<int>(256), *in = device(numbers(256));
    turn<<<1, 256>>>(out, in);
    return end(out);
}
