// check: kind=out-of-bounds kernel=previous
#include "seed.h"

__global__ void previous(int *out, const int *in) {
    int i = threadIdx.x;
    out[i] = in[i - 1] + 1; // BUG
}
int main() {
    int *out = device<int>(64), *in = device(numbers(64));
    previous<<<1, 64>>>(out, in);
    return end(out);
}
