// check: kind=grid-race kernel=halo
#include "seed.h"

__global__ void halo(int *values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int next = values[(i + 1) % n]; // BUG
    __syncthreads();
    values[i] = next;
}
int main() {
    int *values = device(numbers(512));
    halo<<<4, 128>>>(values, 512);
    return end(values);
}
