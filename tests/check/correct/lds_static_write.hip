// check: correct
#include "program.h"

__global__ void rotate(int* data, int by) {
    __shared__ int tile[128];
    int i = threadIdx.x;
    tile[(i + by) % 128] = data[i];
    __syncthreads();
    if (i >= by) data[i] = tile[i];
}

int main() {
    int* data = zeros<int>(128);
    rotate<<<1, 128>>>(data, 32);
    return finish(data);
}
