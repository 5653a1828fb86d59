// check: kind=use-after-free kernel=add
#include "seed.h"

__global__ void add(int *out, const int *in) {
    out[threadIdx.x] = in[threadIdx.x] + 1; // BUG
}
int main() {
    int *out = device<int>(64), *in = device(numbers(64));
    (void)hipFree(in);
    add<<<1, 64>>>(out, in);
    return end(out);
}
