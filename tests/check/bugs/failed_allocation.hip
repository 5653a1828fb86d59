// check: kind=null-pointer kernel=clear
#include "seed.h"

__global__ void clear(int *values) {
    values[blockIdx.x * blockDim.x + threadIdx.x] = 0; // BUG
}
int main() {
    int *values = nullptr, *other = device<int>(1);
    (void)hipMalloc(&values, size_t(1) << 60);
    clear<<<2, 64>>>(values);
    return end(other);
}
