// check: correct
#include "seed.h"

// All threads store to one word, atomically: the result is the value of one of them.
__global__ void announce(int *words) {
    __shared__ int last;
    __hip_atomic_store(&words[0], 100 + threadIdx.x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    __hip_atomic_store(&words[1], 100 + blockIdx.x * 256 + threadIdx.x, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
    __hip_atomic_store(&words[2], 100 + threadIdx.x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
    atomicExch(&last, 100 + threadIdx.x);
    __syncthreads();
    if (__hip_atomic_load(&words[0], __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) < 100) atomicAdd(&words[3], 1);
    if (last < 100) atomicAdd(&words[3], 1);
}
int main() {
    int *words = device(std::vector<int>(4));
    announce<<<4, 256>>>(words);
    std::vector<int> found = host(words, 4);
    return pass(found[0] >= 100 && found[1] >= 100 && found[2] >= 100 && found[3] == 0);
}
