// check: kind=out-of-bounds kernel=report
#include "seed.h"

__global__ void report(int *out, int n) {
    if (threadIdx.x == 0) out[n] = 1; // BUG
}
int main() {
    int *out = nullptr;
    (void)hipHostMalloc(reinterpret_cast<void **>(&out), 1024 * sizeof(int), 0);
    report<<<1, 64>>>(out, 1024);
    (void)hipDeviceSynchronize();
    printf("%d\n", out[0]);
    return 0;
}
