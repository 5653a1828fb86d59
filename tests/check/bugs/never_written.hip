// check: kind=uninitialized-read kernel=double_it
#include "program.h"

__global__ void double_it(const int* in, int* out) {
    int i = threadIdx.x;
    out[i] = in[i] > 0 ? 2 : 1; // BUG
}

int main() {
    int *in = raw<int>(64), *out = raw<int>(64);
    double_it<<<1, 64>>>(in, out);
    return finish(in, out);
}
