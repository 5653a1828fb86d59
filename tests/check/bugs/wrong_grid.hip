// check: kind=out-of-bounds kernel=scale
#include "program.h"

__global__ void scale(float* data, float by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    data[i] *= by; // BUG
}

int main() {
    const int count = 1000;
    float* data = zeros<float>(count);
    scale<<<(count + 255) / 256, 256>>>(data, 2.0f);
    return finish(data);
}
