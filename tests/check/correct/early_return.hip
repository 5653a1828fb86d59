// check: correct
#include "seed.h"

__global__ void guarded(int *out, int n) {
    __shared__ int base;
    if (threadIdx.x == 0) base = 10;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = base + i;
}
int main() {
    int *out = device<int>(300);
    guarded<<<3, 128>>>(out, 300);
    return pass(host(out, 300)[299] == 309);
}
