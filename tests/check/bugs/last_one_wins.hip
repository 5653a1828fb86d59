// check: kind=block-race kernel=compete
#include "seed.h"

__global__ void compete(int *out) {
    out[0] = threadIdx.x; // BUG
}
int main() {
    int *out = device<int>(1);
    compete<<<1, 64>>>(out);
    return end(out);
}
