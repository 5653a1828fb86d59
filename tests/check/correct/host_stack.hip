// check: correct
#include "program.h"

__global__ void fill(int* data) {
    data[threadIdx.x] = 1;
}

int main() {
    int* data = raw<int>(64);
    fill<<<1, 64>>>(data);
    (void)hipDeviceSynchronize();
    return finish(data);
}
