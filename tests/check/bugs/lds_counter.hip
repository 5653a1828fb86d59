// check: kind=block-race kernel=count_even
#include "seed.h"

__global__ void count_even(int *out, const int *in) {
    __shared__ int counts[1];
    if (threadIdx.x == 0) counts[0] = 0;
    __syncthreads();
    if (threadIdx.x % 64 == 0) counts[0] += in[threadIdx.x] % 2 == 0; // BUG
    __syncthreads();
    if (threadIdx.x == 0) *out = counts[0];
}
int main() {
    int *out = device<int>(1), *in = device(numbers(256));
    count_even<<<1, 256>>>(out, in);
    return end(out);
}
