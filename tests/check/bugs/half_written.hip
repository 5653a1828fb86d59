// check: kind=uninitialized-read kernel=scale_all
#include "seed.h"

__global__ void scale_all(float *out, const float *in) {
    int i = threadIdx.x;
    out[i] = in[i] * 2.0f; // BUG
}
int main() {
    float *out = device<float>(128), *in = device<float>(128);
    (void)hipMemset(in, 0, 64 * sizeof(float));
    scale_all<<<1, 128>>>(out, in);
    return end(out);
}
