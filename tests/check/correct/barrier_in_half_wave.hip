// check: correct
#include "program.h"

__global__ void half(int* data) {
    __shared__ int tile[64];
    int i = threadIdx.x;
    tile[i] = i;
    __syncthreads();
    if (i < 32) {
        data[i] = 1;
    }
    data[i] += tile[i];
}

int main() {
    int* data = zeros<int>(64);
    half<<<1, 64>>>(data);
    return finish(data);
}
