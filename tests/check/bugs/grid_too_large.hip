// check: kind=out-of-bounds kernel=square
#include "seed.h"

__global__ void square(float *values) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    values[i] = values[i] * values[i]; // BUG
}
int main() {
    float *values = device(std::vector<float>(1000, 2.0f));
    square<<<(1000 + 255) / 256, 256>>>(values);
    return end(values);
}
