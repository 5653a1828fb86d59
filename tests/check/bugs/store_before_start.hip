// check: kind=out-of-bounds kernel=back
#include "seed.h"

__global__ void back(int *out, int distance) {
    out[threadIdx.x - distance] = 7; // BUG
}
int main() {
    int *out = device<int>(256);
    back<<<1, 256>>>(out, 2);
    return end(out);
}
