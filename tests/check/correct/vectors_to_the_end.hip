// check: correct
#include "program.h"

__global__ void copy(const float4* in, float4* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = in[i];
}

int main() {
    float *in = zeros<float>(100), *out = raw<float>(100);
    copy<<<1, 64>>>(reinterpret_cast<float4*>(in), reinterpret_cast<float4*>(out), 25);
    return finish(in, out);
}
