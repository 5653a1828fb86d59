// check: correct
#include "program.h"

__global__ void hand_over(int* data, int* flag) {
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 0) {
        *data = 42;
        __hip_atomic_store(flag, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
    } else {
        while (__hip_atomic_load(flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) == 0) __builtin_amdgcn_s_sleep(1);
        data[blockIdx.x] = *data;
    }
}

int main() {
    int *data = zeros<int>(4), *flag = zeros<int>(1);
    hand_over<<<4, 64>>>(data, flag);
    return finish(data, flag);
}
