// check: correct
#include "seed.h"

__global__ void serve(int *order, int *next, int *serving) {
    if (threadIdx.x != 0) return;
    int ticket = atomicAdd(next, 1);
    while (__hip_atomic_load(serving, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) != ticket) {
    }
    order[0] = order[0] * 3 % 1000 + 1;
    __hip_atomic_fetch_add(serving, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
}
int main() {
    int *order = device(std::vector<int>(1)), *next = device(std::vector<int>(1)), *serving = device(std::vector<int>(1));
    serve<<<8, 64>>>(order, next, serving);
    return pass(host(serving, 1)[0] == 8);
}
