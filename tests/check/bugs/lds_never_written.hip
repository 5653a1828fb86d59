// check: kind=uninitialized-read kernel=pick
#include "program.h"

__global__ void pick(int* out) {
    __shared__ int tile[128];
    int i = threadIdx.x;
    tile[i] = i;
    __syncthreads();
    if (tile[i + 1] > 5) // BUG
        out[i] = 1;
}

int main() {
    int* out = zeros<int>(64);
    pick<<<1, 64>>>(out);
    return finish(out);
}
