// check: correct
#include "program.h"

__global__ void optional(const int* bias, int* out) {
    out[threadIdx.x] = bias ? bias[threadIdx.x] : 0;
}

int main() {
    int* out = raw<int>(64);
    optional<<<1, 64>>>(nullptr, out);
    return finish(out) + (hipFree(nullptr) != hipSuccess);
}
