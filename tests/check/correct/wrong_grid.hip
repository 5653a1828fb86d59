// check: correct
#include "program.h"

__global__ void scale(float* data, float by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    data[i] *= by;
}

int main() {
    const int count = 1000;
    float* data = zeros<float>(1024);
    scale<<<(count + 255) / 256, 256>>>(data, 2.0f);
    return finish(data);
}
