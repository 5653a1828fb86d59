// check: kind=out-of-bounds kernel=strided
#include "seed.h"

__global__ void strided(float *out, int stride) {
    out[threadIdx.x * stride] = 1.0f; // BUG
}
int main() {
    float *out = device<float>(1024);
    strided<<<1, 64>>>(out, 100000);
    return end(out);
}
