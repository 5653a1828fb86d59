// check: kind=out-of-bounds kernel=wrap
#include "seed.h"

__global__ void wrap(int *out, int n) {
    int i = (static_cast<int>(threadIdx.x) - 1) % n;
    out[i] = 1; // BUG
}
int main() {
    int *out = device<int>(64);
    wrap<<<1, 64>>>(out, 64);
    return end(out);
}
