// check: correct
#include "seed.h"

__global__ void twice(float *values, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) values[i] *= 2;
}
int main() {
    float *values = device(std::vector<float>(10000, 1.5f));
    for (int i = 0; i < 3; ++i) twice<<<8, 128>>>(values, 10000);
    return pass(host(values, 10000)[9999] == 12);
}
