// check: kind=block-race kernel=pass_on
#include "seed.h"

__global__ void pass_on(int *out, int *between) {
    between[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = between[(threadIdx.x + 64) % 256]; // BUG
}
int main() {
    int *out = device<int>(256), *between = device(std::vector<int>(256));
    pass_on<<<1, 256>>>(out, between);
    return end(out);
}
