// check: kind=out-of-bounds kernel=tally
#include "program.h"

__global__ void tally(const int* values, int* bins) {
    atomicAdd(&bins[values[threadIdx.x]], 1); // BUG
}

int main() {
    std::vector<int> host(64);
    for (int i = 0; i < 64; i++) host[i] = i % 10;
    host[40] = 10;
    int *values = raw<int>(64), *bins = zeros<int>(10);
    (void)hipMemcpy(values, host.data(), 64 * sizeof(int), hipMemcpyHostToDevice);
    tally<<<1, 64>>>(values, bins);
    return finish(values, bins);
}
