// check: correct
#include "seed.h"

__global__ void scan(int *values) {
    __shared__ int sums[256];
    int i = threadIdx.x;
    sums[i] = values[i];
    __syncthreads();
    for (int distance = 1; distance < 256; distance *= 2) {
        int more = i >= distance ? sums[i - distance] : 0;
        __syncthreads();
        sums[i] += more;
        __syncthreads();
    }
    values[i] = sums[i];
}
int main() {
    int *values = device(std::vector<int>(256, 1));
    scan<<<1, 256>>>(values);
    return pass(host(values, 256)[255] == 256);
}
