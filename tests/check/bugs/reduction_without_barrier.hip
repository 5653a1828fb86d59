// check: kind=block-race kernel=reduce
#include "seed.h"

__global__ void reduce(int *out, const int *in) {
    __shared__ int sums[256];
    int i = threadIdx.x;
    sums[i] = in[i];
    __syncthreads();
    for (int width = 128; width > 0; width /= 2)
        if (i < width) sums[i] += sums[i + width]; // BUG
    if (i == 0) *out = sums[0];
}
int main() {
    int *out = device<int>(1), *in = device(numbers(256));
    reduce<<<1, 256>>>(out, in);
    return end(out);
}
