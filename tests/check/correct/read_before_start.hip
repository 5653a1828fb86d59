// check: correct
#include "program.h"

__global__ void difference(const float* in, float* out, int count) {
    int i = threadIdx.x;
    if (i > 0 && i < count)
        out[i] = in[i] - in[i - 1];
}

int main() {
    float *in = zeros<float>(64), *out = zeros<float>(64);
    difference<<<1, 64>>>(in, out, 64);
    return finish(in, out);
}
