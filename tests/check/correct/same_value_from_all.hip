// check: correct
#include "program.h"

// All threads that write it write the same value, with atomics.
__global__ void any_zero(const int* in, int* found) {
    if (in[blockIdx.x * blockDim.x + threadIdx.x] == 0)
        __hip_atomic_store(found, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

int main() {
    int *in = zeros<int>(256), *found = zeros<int>(1);
    any_zero<<<2, 128>>>(in, found);
    return finish(in, found);
}
