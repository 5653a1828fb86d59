// check: correct
#include "program.h"

__global__ void maximum(const int* in, int* out) {
    int value = in[blockIdx.x * blockDim.x + threadIdx.x];
    if (threadIdx.x == 0) atomicMax(out, value);
}

int main() {
    int *in = zeros<int>(512), *out = zeros<int>(1);
    maximum<<<8, 64>>>(in, out);
    return finish(in, out);
}
