// check: kind=block-race kernel=scan
#include "program.h"

__global__ void scan(int* data) {
    __shared__ int sums[256];
    int i = threadIdx.x;
    sums[i] = data[i];
    __syncthreads();
    for (int by = 1; by < 256; by *= 2) {
        int add = i >= by ? sums[i - by] : 0;
        sums[i] += add; // BUG
        __syncthreads();
    }
    data[i] = sums[i];
}

int main() {
    int* data = zeros<int>(256);
    scan<<<1, 256>>>(data);
    return finish(data);
}
