// check: correct
#include "seed.h"

__device__ int counter;
__device__ int table[5] = {1, 2, 3, 4, 5};
__global__ void bump() {
    atomicAdd(&counter, table[threadIdx.x % 5]);
}
int main() {
    bump<<<1, 100>>>();
    int value = 0;
    (void)hipMemcpyFromSymbol(&value, HIP_SYMBOL(counter), sizeof value);
    return pass(value == 300);
}
