// check: correct
#include "program.h"

__global__ void filter(const int* in, int* out, int* count) {
    int kept[8], n = 0;
    for (int i = 0; i < 8; i++)
        if (in[threadIdx.x * 8 + i] >= 0) kept[n++] = in[threadIdx.x * 8 + i];
    int sum = 0;
    for (int i = 0; i < n; i++) sum += kept[i];
    out[threadIdx.x] = sum;
    atomicAdd(count, n);
}

int main() {
    int *in = zeros<int>(512), *out = raw<int>(64), *count = zeros<int>(1);
    filter<<<1, 64>>>(in, out, count);
    return finish(in, out, count);
}
