// check: kind=use-after-free kernel=write
#include "seed.h"

__global__ void write(int *out) {
    out[threadIdx.x] = threadIdx.x; // BUG
}
int main() {
    int *kept = device<int>(64), *out = device<int>(64);
    write<<<1, 64>>>(out);
    (void)hipDeviceSynchronize();
    (void)hipFree(out);
    int *other = device(numbers(64));
    write<<<1, 64>>>(kept);
    (void)hipDeviceSynchronize();
    write<<<1, 32>>>(out);
    (void)other;
    return end(kept);
}
