// check: kind=misaligned kernel=tally
#include "seed.h"

__global__ void tally(int *out, int offset) {
    __shared__ unsigned char bytes[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) bytes[i] = 0;
    __syncthreads();
    atomicAdd(reinterpret_cast<int *>(bytes + offset), 1); // BUG
    __syncthreads();
    out[0] = bytes[offset];
}
int main() {
    int *out = device<int>(1);
    tally<<<1, 64>>>(out, 6);
    return end(out);
}
