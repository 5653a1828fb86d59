// check: kind=host-pointer kernel=scale
#include "seed.h"

int factors[64] = {3};
__global__ void scale(int *out, const int *factor) {
    out[threadIdx.x] *= *factor; // BUG
}
int main() {
    int *out = device(numbers(64));
    scale<<<1, 64>>>(out, factors);
    return end(out);
}
