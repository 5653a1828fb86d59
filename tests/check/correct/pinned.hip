// check: correct
#include "seed.h"

__global__ void add(int *values) {
    values[threadIdx.x] += 1;
}
int main() {
    int *values = nullptr;
    (void)hipHostMalloc(reinterpret_cast<void **>(&values), 100 * sizeof(int), 0);
    for (int i = 0; i < 100; ++i) values[i] = i;
    add<<<1, 100>>>(values);
    (void)hipDeviceSynchronize();
    bool is_right = values[99] == 100;
    (void)hipHostFree(values);
    return pass(is_right);
}
