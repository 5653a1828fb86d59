// check: correct
#include "program.h"

__device__ int twice(int x) { return 2 * x; }
__device__ int thrice(int x) { return 3 * x; }
using Function = int (*)(int);
__device__ Function table[2] = {twice, thrice};

__global__ void call(int* out) { out[threadIdx.x] = table[threadIdx.x & 1](threadIdx.x); }

int main() {
    int* out = raw<int>(64);
    call<<<1, 64>>>(out);
    return finish(out);
}
