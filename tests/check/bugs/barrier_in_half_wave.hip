// check: kind=divergent-barrier kernel=half
#include "program.h"

__global__ void half(int* data) {
    __shared__ int tile[64];
    int i = threadIdx.x;
    tile[i] = i;
    if (i < 32) {
        __syncthreads(); // BUG
        data[i] = 1;
    }
    data[i] += tile[i];
}

int main() {
    int* data = zeros<int>(64);
    half<<<1, 64>>>(data);
    return finish(data);
}
