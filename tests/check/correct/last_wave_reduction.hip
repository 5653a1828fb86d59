// check: correct
#include "seed.h"

__global__ void reduce(int *out, const int *in) {
    __shared__ int sums[256];
    int i = threadIdx.x;
    sums[i] = in[i];
    __syncthreads();
    for (int width = 128; width >= 64; width /= 2) {
        if (i < width) sums[i] += sums[i + width];
        __syncthreads();
    }
    int sum = sums[i % 64];
    for (int width = 32; width > 0; width /= 2) sum += __shfl_down(sum, width);
    if (i == 0) *out = sum;
}
int main() {
    int *out = device<int>(1), *in = device(numbers(256));
    reduce<<<1, 256>>>(out, in);
    return pass(host(out, 1)[0] == 255 * 128);
}
