// check: correct
#include "seed.h"

__global__ void slow(int *values) {
    for (int i = 0; i < 1000; ++i) values[threadIdx.x] += i;
}
int main() {
    int *out = device(std::vector<int>(64)), *values = device(std::vector<int>(64));
    slow<<<1, 64>>>(values);
    (void)hipMemcpyAsync(out, values, 256, hipMemcpyDeviceToDevice, nullptr);
    (void)hipFree(values);
    return pass(host(out, 64)[0] == 499500);
}
