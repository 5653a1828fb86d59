// check: kind=out-of-bounds kernel=set
#include "seed.h"

__device__ int slots[10];
__global__ void set(int *out, int n) {
    slots[n] = 5; // BUG
    out[0] = slots[n - 1];
}
int main() {
    int *out = device<int>(1);
    set<<<1, 1>>>(out, 10);
    return end(out);
}
