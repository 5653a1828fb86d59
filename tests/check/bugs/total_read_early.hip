// check: kind=block-race kernel=share_total
#include "program.h"

__global__ void share_total(const int* in, int* out) {
    __shared__ int total;
    if (threadIdx.x == 0)
        total = in[0]; // BUG
    out[threadIdx.x] = total; // BUG
}

int main() {
    int *in = zeros<int>(1), *out = raw<int>(192);
    share_total<<<1, 192>>>(in, out);
    return finish(in, out);
}
