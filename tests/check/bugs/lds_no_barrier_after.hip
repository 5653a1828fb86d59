// check: kind=block-race kernel=tiles
#include "program.h"

__global__ void tiles(const int* in, int* out, int count) {
    __shared__ int tile[128];
    int i = threadIdx.x, sum = 0;
    for (int t = 0; t < count; t++) {
        tile[i] = in[t * 128 + i]; // BUG
        __syncthreads();
        sum += tile[127 - i];
    }
    out[i] = sum;
}

int main() {
    int *in = zeros<int>(512), *out = raw<int>(128);
    tiles<<<1, 128>>>(in, out, 4);
    return finish(in, out);
}
