// check: kind=divergent-barrier kernel=branches
#include "program.h"

__global__ void branches(int* data) {
    int i = threadIdx.x;
    if (i < 64) {
        data[i] = 1;
        __syncthreads(); // BUG
        data[i] += 2;
    } else {
        data[i] = 3;
        __syncthreads(); // BUG
        data[i] *= 4;
    }
}

int main() {
    int* data = zeros<int>(128);
    branches<<<1, 128>>>(data);
    return finish(data);
}
