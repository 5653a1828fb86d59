// check: kind=out-of-bounds kernel=shift
#include "seed.h"

__global__ void shift(int *out, const int *in, int n) {
    int i = threadIdx.x;
    if (i < n) out[i] = in[i + 1]; // BUG
}
int main() {
    int *out = device<int>(64), *in = device(numbers(64));
    shift<<<1, 64>>>(out, in, 64);
    return end(out);
}
