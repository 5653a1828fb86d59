// check: correct
#include "seed.h"

__global__ void integrate(double *out, int n) {
    double sum = 0, step = 1.0 / n;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        double x = (i + 0.5) * step;
        sum += 4.0 / (1.0 + x * x);
    }
    for (int width = 32; width > 0; width /= 2) sum += __shfl_xor(sum, width);
    if (threadIdx.x == 0) *out = sum * step;
}
int main() {
    double *out = device<double>(1);
    integrate<<<1, 64>>>(out, 10000);
    double pi = host(out, 1)[0];
    return pass(pi > 3.14159 && pi < 3.1416);
}
