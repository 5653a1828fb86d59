// check: kind=misaligned kernel=add_in_lds
#include "program.h"

__global__ void add_in_lds(int* out, int at) {
    __shared__ char bytes[64];
    bytes[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x == 0)
        atomicAdd(reinterpret_cast<int*>(bytes + at), 1); // BUG
    __syncthreads();
    out[threadIdx.x] = bytes[threadIdx.x];
}

int main() {
    int* out = raw<int>(64);
    add_in_lds<<<1, 64>>>(out, 2);
    return finish(out);
}
