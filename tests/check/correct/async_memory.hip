// check: correct
#include "seed.h"

__global__ void fill(int *values, int value) {
    values[threadIdx.x] = value;
}
int main() {
    hipStream_t stream;
    (void)hipStreamCreate(&stream);
    int sum = 0;
    for (int round = 0; round < 10; ++round) {
        int *values = nullptr, result[64];
        (void)hipMallocAsync(reinterpret_cast<void **>(&values), 256, stream);
        fill<<<1, 64, 0, stream>>>(values, round);
        (void)hipMemcpyAsync(result, values, 256, hipMemcpyDeviceToHost, stream);
        (void)hipFreeAsync(values, stream);
        (void)hipStreamSynchronize(stream);
        sum += result[63];
    }
    return pass(sum == 45);
}
