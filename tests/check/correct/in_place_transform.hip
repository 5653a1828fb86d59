// check: correct
#include "program.h"

__global__ void square(float* data, int count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) data[i] *= data[i];
}

int main() {
    float* data = zeros<float>(1000);
    square<<<4, 64>>>(data, 1000);
    square<<<3, 96>>>(data, 1000);
    return finish(data);
}
