// check: correct
#include "program.h"

__global__ void uniform(int* data, int mode) {
    __shared__ int tile[128];
    int i = threadIdx.x;
    tile[i] = i;
    if (mode > 0) {
        __syncthreads();
        data[i] = tile[127 - i];
    } else {
        data[i] = 0;
    }
}

int main() {
    int* data = raw<int>(128);
    uniform<<<1, 128>>>(data, 1);
    uniform<<<1, 128>>>(data, 0);
    return finish(data);
}
