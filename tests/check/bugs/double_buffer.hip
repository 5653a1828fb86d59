// check: kind=block-race kernel=smooth
#include "program.h"

__global__ void smooth(int* data, int steps) {
    __shared__ int buffer[2][128];
    int i = threadIdx.x;
    buffer[0][i] = data[i];
    __syncthreads();
    for (int s = 0; s < steps; s++) {
        int from = s & 1, to = from;
        int value = buffer[from][(i + 64) & 127];
        buffer[to][i] = value + 1; // BUG
        __syncthreads();
    }
    data[i] = buffer[steps & 1][i];
}

int main() {
    int* data = zeros<int>(128);
    smooth<<<1, 128>>>(data, 4);
    return finish(data);
}
