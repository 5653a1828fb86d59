// check: kind=grid-race kernel=histogram
#include "seed.h"

__global__ void histogram(int *bins, const int *values) {
    if (threadIdx.x == 0) bins[values[blockIdx.x] % 4] += 1; // BUG
}
int main() {
    int *bins = device(std::vector<int>(4)), *values = device(numbers(32));
    histogram<<<32, 64>>>(bins, values);
    return end(bins);
}
