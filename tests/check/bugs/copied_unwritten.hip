// check: kind=uninitialized-read kernel=negate
#include "seed.h"

__global__ void negate(int *out, const int *in) {
    out[threadIdx.x] = -in[threadIdx.x]; // BUG
}
int main() {
    int *out = device<int>(64), *in = device<int>(64), *from = device<int>(64);
    (void)hipMemcpy(in, from, 256, hipMemcpyDeviceToDevice);
    negate<<<1, 64>>>(out, in);
    return end(out);
}
