// check: kind=out-of-bounds kernel=fill
#include "seed.h"

__global__ void fill(int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) out[i] = i; // BUG
}
int main() {
    int *out = device<int>(1000);
    fill<<<4, 256>>>(out, 1000);
    return end(out);
}
