// check: kind=cooperative-too-large kernel=meet
#include "seed.h"

__global__ void meet(int *out) {
    out[blockIdx.x] = 1;
}
int main() {
    int *out = device<int>(100000);
    void *arguments[] = {&out};
    (void)hipLaunchCooperativeKernel(reinterpret_cast<const void *>(meet), dim3(100000), dim3(64), arguments, 0, nullptr); // BUG
    return end(out);
}
