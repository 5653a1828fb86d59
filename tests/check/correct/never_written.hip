// check: correct
#include "program.h"

__global__ void double_it(const int* in, int* out) {
    int i = threadIdx.x;
    out[i] = in[i] > 0 ? 2 : 1;
}

int main() {
    int *in = zeros<int>(64), *out = raw<int>(64);
    double_it<<<1, 64>>>(in, out);
    return finish(in, out);
}
