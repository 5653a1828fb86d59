// check: kind=out-of-bounds kernel=caller
#include "seed.h"

__device__ void put(int *out, int i, int value) {
    out[i] = value; // BUG
}
__global__ void caller(int *out, int n) {
    int i = threadIdx.x;
    put(out, n - i, i);
}
int main() {
    int *out = device<int>(128);
    caller<<<1, 128>>>(out, 128);
    return end(out);
}
