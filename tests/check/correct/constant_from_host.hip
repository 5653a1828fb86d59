// check: correct
#include "program.h"

__constant__ int offsets[4];
__device__ int result[64];

__global__ void use_offsets() { result[threadIdx.x] = offsets[threadIdx.x & 3]; }

int main() {
    int host[4] = {1, 2, 3, 4}, out[64] = {};
    if (hipMemcpyToSymbol(offsets, host, sizeof host) != hipSuccess) return 2;
    use_offsets<<<1, 64>>>();
    if (hipMemcpyFromSymbol(out, result, sizeof out) != hipSuccess) return 2;
    return out[2] != 3;
}
