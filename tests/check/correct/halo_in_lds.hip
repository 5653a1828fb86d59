// check: correct
#include "program.h"

__global__ void stencil(const float* in, float* out, int count) {
    __shared__ float tile[130];
    int i = threadIdx.x, at = blockIdx.x * 128 + i;
    tile[i + 1] = at < count ? in[at] : 0;
    if (i == 0) tile[0] = at > 0 ? in[at - 1] : 0;
    if (i == 127) tile[129] = at + 1 < count ? in[at + 1] : 0;
    __syncthreads();
    if (at < count) out[at] = tile[i] + tile[i + 1] + tile[i + 2];
}

int main() {
    float *in = zeros<float>(500), *out = raw<float>(500);
    stencil<<<4, 128>>>(in, out, 500);
    return finish(in, out);
}
