// check: correct
#include "seed.h"

__global__ void locked(int *value, int *lock) {
    if (threadIdx.x != 0) return;
    while (__hip_atomic_exchange(lock, 1, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) != 0) {
    }
    *value += 1;
    __hip_atomic_store(lock, 0, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
}
int main() {
    int *value = device(std::vector<int>(1)), *lock = device(std::vector<int>(1));
    locked<<<32, 64>>>(value, lock);
    return pass(host(value, 1)[0] == 32);
}
