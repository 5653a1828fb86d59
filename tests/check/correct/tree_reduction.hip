// check: correct
#include "program.h"

__global__ void reduce(const float* in, float* out, int count) {
    __shared__ float sums[256];
    int i = threadIdx.x, at = blockIdx.x * 512 + i;
    sums[i] = (at < count ? in[at] : 0) + (at + 256 < count ? in[at + 256] : 0);
    __syncthreads();
    for (int half = 128; half >= 1; half >>= 1) {
        if (i < half) sums[i] += sums[i + half];
        __syncthreads();
    }
    if (i == 0) atomicAdd(out, sums[0]);
}

int main() {
    float *in = zeros<float>(1000), *out = zeros<float>(1);
    reduce<<<2, 256>>>(in, out, 1000);
    return finish(in, out);
}
