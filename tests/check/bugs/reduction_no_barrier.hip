// check: kind=block-race kernel=reduce
#include "program.h"

__global__ void reduce(const int* in, int* out) {
    __shared__ int sums[256];
    int i = threadIdx.x;
    sums[i] = in[i];
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (i < half)
            sums[i] += sums[i + half]; // BUG
    }
    if (i == 0) *out = sums[0];
}

int main() {
    int *in = zeros<int>(256), *out = raw<int>(1);
    reduce<<<1, 256>>>(in, out);
    return finish(in, out);
}
