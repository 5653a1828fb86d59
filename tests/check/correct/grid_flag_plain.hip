// check: correct
#include "program.h"

__global__ void hand_over(int* data, int* flag) {
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 0) {
        *data = 42;
        __threadfence();
        atomicExch(flag, 1);
    } else {
        while (atomicAdd(flag, 0) == 0) __builtin_amdgcn_s_sleep(1);
        __threadfence();
        data[blockIdx.x] = *data;
    }
}

int main() {
    int *data = zeros<int>(4), *flag = zeros<int>(1);
    hand_over<<<2, 64>>>(data, flag);
    return finish(data, flag);
}
