// check: correct
#include "program.h"

__global__ void branches(int* data) {
    int i = threadIdx.x;
    if (blockIdx.x == 0) {
        data[i] = 1;
        __syncthreads();
        data[i] += 2;
    } else {
        data[i] = 3;
        __syncthreads();
        data[i] *= 4;
    }
}

int main() {
    int* data = zeros<int>(128);
    branches<<<1, 128>>>(data);
    return finish(data);
}
