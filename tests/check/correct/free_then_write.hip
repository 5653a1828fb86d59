// check: correct
#include "program.h"

__global__ void touch(int* data) {
    data[threadIdx.x] = 1;
}

int main() {
    int* data = raw<int>(64);
    touch<<<1, 64>>>(data);
    (void)hipDeviceSynchronize();
    (void)hipFree(data);
    return 0;
}
