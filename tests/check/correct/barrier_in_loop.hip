// check: correct
#include "program.h"

__global__ void loop(int* data) {
    int i = threadIdx.x;
    for (int n = 0; n < 3; n++) {
        __syncthreads();
        data[i] += 1;
    }
    data[i] += 1;
}

int main() {
    int* data = zeros<int>(64);
    loop<<<1, 64>>>(data);
    return finish(data);
}
