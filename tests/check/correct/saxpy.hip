// check: correct
#include "seed.h"

__global__ void saxpy(float *y, const float *x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
int main() {
    float *y = device(std::vector<float>(1000, 1)), *x = device(std::vector<float>(1000, 2));
    saxpy<<<4, 256>>>(y, x, 3, 1000);
    return pass(host(y, 1000)[999] == 7);
}
