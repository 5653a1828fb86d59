// check: kind=out-of-bounds kernel=lookup
#include "seed.h"

__device__ int table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
__global__ void lookup(int *out, int n) {
    out[threadIdx.x] = table[threadIdx.x + n]; // BUG
}
int main() {
    int *out = device<int>(8);
    lookup<<<1, 8>>>(out, 4000);
    return end(out);
}
