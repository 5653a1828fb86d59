// check: correct
#include "program.h"

__global__ void reverse(int* data, int size) {
    __shared__ int tile[64];
    int i = threadIdx.x;
    tile[i] = data[i];
    __syncthreads();
    data[i] = tile[size - 1 - i];
}

int main() {
    int* data = zeros<int>(64);
    reverse<<<1, 64>>>(data, 64);
    return finish(data);
}
