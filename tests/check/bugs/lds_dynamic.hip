// check: kind=out-of-bounds kernel=stage
#include "program.h"

__global__ void stage(float* data) {
    extern __shared__ float tile[];
    int i = threadIdx.x;
    tile[i] = data[i]; // BUG
    __syncthreads();
    data[i] = 2 * tile[i ^ 1];
}

int main() {
    float* data = zeros<float>(128);
    stage<<<1, 128, 64 * sizeof(float)>>>(data);
    return finish(data);
}
