// check: kind=out-of-bounds kernel=quads
#include "seed.h"

__global__ void quads(int4 *out, int value) {
    out[threadIdx.x] = make_int4(value, value, value, value); // BUG
}
int main() {
    int *out = device<int>(254);
    quads<<<1, 64>>>(reinterpret_cast<int4 *>(out), 3);
    return end(out);
}
