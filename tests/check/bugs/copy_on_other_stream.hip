// check: kind=stream-race kernel=compute
#include "seed.h"

__global__ void compute(int *data) {
    data[threadIdx.x] += 1; // BUG
}
int main() {
    hipStream_t one, two;
    (void)hipStreamCreate(&one);
    (void)hipStreamCreate(&two);
    int *copy = device<int>(64), *data = device(numbers(64));
    compute<<<1, 64, 0, one>>>(data);
    (void)hipMemcpyAsync(copy, data, 256, hipMemcpyDeviceToDevice, two);
    return end(copy);
}
