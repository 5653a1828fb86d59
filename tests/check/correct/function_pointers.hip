// check: correct
#include "seed.h"

__device__ int twice(int x) {
    return 2 * x;
}
__device__ int square(int x) {
    return x * x;
}
__device__ int (*const functions[2])(int) = {twice, square};
__global__ void compute(int *out, int which) {
    out[threadIdx.x] = functions[(which + threadIdx.x) % 2](threadIdx.x);
}
int main() {
    int *out = device<int>(64);
    compute<<<1, 64>>>(out, 0);
    return pass(host(out, 64)[5] == 25 && host(out, 64)[6] == 12);
}
