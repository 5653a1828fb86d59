// check: correct
#include "seed.h"

__global__ void add(int *values) {
    values[threadIdx.x] += 1;
}
int main() {
    int *values = nullptr;
    (void)hipMallocManaged(&values, 100 * sizeof(int));
    for (int i = 0; i < 100; ++i) values[i] = i;
    add<<<1, 100>>>(values);
    (void)hipDeviceSynchronize();
    values[0] += 5;
    add<<<1, 100>>>(values);
    (void)hipDeviceSynchronize();
    return pass(values[0] == 7 && values[99] == 101);
}
