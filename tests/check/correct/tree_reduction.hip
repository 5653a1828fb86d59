// check: correct
#include "seed.h"

__global__ void reduce(int *out, const int *in) {
    __shared__ int sums[256];
    int i = threadIdx.x;
    sums[i] = in[blockIdx.x * 256 + i];
    for (int width = 128; width > 0; width /= 2) {
        __syncthreads();
        if (i < width) sums[i] += sums[i + width];
    }
    if (i == 0) atomicAdd(out, sums[0]);
}
int main() {
    int *out = device(std::vector<int>(1)), *in = device(numbers(1024));
    reduce<<<4, 256>>>(out, in);
    return pass(host(out, 1)[0] == 1023 * 512);
}
