// check: kind=out-of-bounds kernel=touch
#include "seed.h"

__global__ void touch(int *values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] += 1; // BUG
}
int main() {
    int *values = nullptr;
    (void)hipMallocManaged(&values, 1024 * sizeof(int));
    for (int i = 0; i < 1024; ++i) values[i] = i;
    touch<<<5, 256>>>(values, 1025);
    (void)hipDeviceSynchronize();
    printf("%d\n", values[3]);
    return 0;
}
