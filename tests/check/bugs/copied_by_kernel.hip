// check: kind=uninitialized-read kernel=second
#include "seed.h"

__global__ void first(int *out, const int *in) {
    out[threadIdx.x] = in[threadIdx.x];
}
__global__ void second(int *out, const int *in) {
    out[threadIdx.x] = in[threadIdx.x] + 1; // BUG
}
int main() {
    int *out = device<int>(64), *between = device<int>(64), *in = device<int>(64);
    first<<<1, 64>>>(between, in);
    second<<<1, 64>>>(out, between);
    return end(out);
}
