// check: correct
#include "seed.h"

__global__ void histogram(int *bins, const unsigned char *values, int n) {
    __shared__ int own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&own[values[i]], 1);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}
int main() {
    std::vector<unsigned char> values(5000);
    for (int i = 0; i < 5000; ++i) values[i] = static_cast<unsigned char>(i * 7);
    int *bins = device(std::vector<int>(256));
    unsigned char *in = device(values);
    histogram<<<3, 256>>>(bins, in, 5000);
    int total = 0;
    for (int bin : host(bins, 256)) total += bin;
    return pass(total == 5000);
}
