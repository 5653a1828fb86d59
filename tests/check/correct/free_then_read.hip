// check: correct
#include "program.h"

__global__ void sum(const int* data, int* out) {
    atomicAdd(out, data[threadIdx.x]);
}

int main() {
    int *data = zeros<int>(64), *out = zeros<int>(1);
    sum<<<1, 64>>>(data, out);
    (void)hipDeviceSynchronize();
    sum<<<1, 64>>>(data, out);
    return finish(data, out);
}
