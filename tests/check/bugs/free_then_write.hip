// check: kind=use-after-free kernel=touch
#include "program.h"

__global__ void touch(int* data) {
    data[threadIdx.x] = 1; // BUG
}

int main() {
    int* data = raw<int>(64);
    (void)hipFree(data);
    touch<<<1, 64>>>(data);
    (void)hipDeviceSynchronize();
    return 0;
}
