// check: correct
#include "seed.h"

__global__ void reverse(int *values) {
    extern __shared__ int tile[];
    tile[threadIdx.x] = values[threadIdx.x];
    __syncthreads();
    values[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
int main() {
    int *values = device(numbers(200));
    reverse<<<1, 200, 200 * sizeof(int)>>>(values);
    return pass(host(values, 200)[0] == 199);
}
