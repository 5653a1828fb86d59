// check: kind=out-of-bounds kernel=weigh
#include "program.h"

__constant__ float weights[5] = {1, 4, 6, 4, 1};

__global__ void weigh(float* out, int count) {
    int i = threadIdx.x;
    if (i < count)
        out[i] = weights[i]; // BUG
}

int main() {
    float* out = raw<float>(64);
    weigh<<<1, 64>>>(out, 6);
    return finish(out);
}
