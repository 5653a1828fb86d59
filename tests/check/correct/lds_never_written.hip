// check: correct
#include "program.h"

__global__ void pick(int* out) {
    __shared__ int tile[128];
    int i = threadIdx.x;
    tile[i] = i;
    tile[i + 64] = i;
    __syncthreads();
    if (tile[i + 64] > 5)
        out[i] = 1;
}

int main() {
    int* out = zeros<int>(64);
    pick<<<1, 64>>>(out);
    return finish(out);
}
