// check: kind=host-pointer kernel=fill
#include "program.h"

__global__ void fill(int* data) {
    data[threadIdx.x] = 1; // BUG
}

int main() {
    int data[64] = {};
    fill<<<1, 64>>>(data);
    (void)hipDeviceSynchronize();
    return data[0] & 0;
}
