// check: correct
#include "program.h"

__global__ void locked_add(int* lock, int* data) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) __builtin_amdgcn_s_sleep(1);
        __threadfence();
        data[0] += 1;
        __threadfence();
        atomicExch(lock, 0);
    }
}

int main() {
    int *lock = zeros<int>(1), *data = zeros<int>(1);
    locked_add<<<8, 64>>>(lock, data);
    return finish(lock, data);
}
