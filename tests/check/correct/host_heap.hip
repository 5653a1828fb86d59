// check: correct
#include "program.h"

__global__ void add(const int* in, int* out) {
    int value = in[threadIdx.x];
    out[threadIdx.x] = value + 1;
}

int main() {
    std::vector<int> host(64);
    int *in = zeros<int>(64), *out = raw<int>(64);
    add<<<1, 64>>>(in, out);
    return finish(in, out);
}
