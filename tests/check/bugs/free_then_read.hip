// check: kind=use-after-free kernel=sum
#include "program.h"

__global__ void sum(const int* data, int* out) {
    atomicAdd(out, data[threadIdx.x]); // BUG
}

int main() {
    int *data = zeros<int>(64), *out = zeros<int>(1);
    sum<<<1, 64>>>(data, out);
    (void)hipDeviceSynchronize();
    (void)hipFree(data);
    sum<<<1, 64>>>(data, out);
    return finish(out);
}
