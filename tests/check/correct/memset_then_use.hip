// check: correct
#include "seed.h"

__global__ void add(int *values) {
    values[threadIdx.x] += 1;
}
int main() {
    int *values = device<int>(64);
    (void)hipMemsetAsync(values, 0, 256, nullptr);
    add<<<1, 64>>>(values);
    return pass(host(values, 64)[63] == 1);
}
