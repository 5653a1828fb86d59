// check: kind=out-of-bounds kernel=count
#include "seed.h"

__global__ void count(int *bins, const int *values) {
    atomicAdd(&bins[values[threadIdx.x]], 1); // BUG
}
int main() {
    int *bins = device(std::vector<int>(64)), *values = device(numbers(65));
    count<<<1, 65>>>(bins, values);
    return end(bins);
}
