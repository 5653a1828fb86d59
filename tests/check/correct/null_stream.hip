// check: correct
#include "seed.h"

__global__ void add(int *values, int more) {
    values[threadIdx.x] += more;
}
int main() {
    hipStream_t one, two;
    (void)hipStreamCreate(&one);
    (void)hipStreamCreate(&two);
    int *values = device(numbers(64));
    add<<<1, 64, 0, one>>>(values, 1);
    add<<<1, 64>>>(values, 1);
    add<<<1, 64, 0, two>>>(values, 1);
    (void)hipDeviceSynchronize();
    add<<<1, 64, 0, one>>>(values, 1);
    return pass(host(values, 64)[0] == 4);
}
