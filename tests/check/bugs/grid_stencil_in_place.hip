// check: kind=grid-race kernel=stencil
#include "program.h"

__global__ void stencil(const int* in, int* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int left = in[i ? i - 1 : i]; // BUG
    if (i < count)
        out[i] = left + 1; // BUG
}

int main() {
    int *data = zeros<int>(256), *other = zeros<int>(256);
    stencil<<<4, 64>>>(data, data, 256);
    return finish(data, other);
}
