// check: kind=endless-wait kernel=locked args=--sim-kernel-timeout,1
#include "program.h"

__global__ void locked(int* lock, int* data) {
    if (threadIdx.x != 0) return;
    while (__hip_atomic_exchange(lock, 1, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) != 0) // BUG
        __builtin_amdgcn_s_sleep(10); // BUG
    *data += 1;
}

int main() {
    int *lock = zeros<int>(1), *data = zeros<int>(1);
    locked<<<4, 64>>>(lock, data);
    return finish(lock, data);
}
