// check: correct
#include "seed.h"

__constant__ float weights[16];
__global__ void apply(float *out, const float *in) {
    float sum = 0;
    for (int i = 0; i < 16; ++i) sum += weights[i] * in[threadIdx.x + i];
    out[threadIdx.x] = sum;
}
int main() {
    std::vector<float> ones(16, 1);
    (void)hipMemcpyToSymbol(HIP_SYMBOL(weights), ones.data(), 64);
    float *out = device<float>(64), *in = device(std::vector<float>(80, 2));
    apply<<<1, 64>>>(out, in);
    return pass(host(out, 64)[63] == 32);
}
