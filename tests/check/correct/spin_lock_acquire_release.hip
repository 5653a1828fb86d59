// check: correct
#include "program.h"

__global__ void locked_add(int* lock, int* data) {
    if (threadIdx.x != 0) return;
    int expected = 0;
    while (!__hip_atomic_compare_exchange_strong(lock, &expected, 1, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)) {
        expected = 0;
        __builtin_amdgcn_s_sleep(1);
    }
    data[0] += 1;
    data[1] += data[0];
    __hip_atomic_store(lock, 0, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
}

int main() {
    int *lock = zeros<int>(1), *data = zeros<int>(2);
    locked_add<<<16, 64>>>(lock, data);
    return finish(lock, data);
}
