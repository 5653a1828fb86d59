// check: none
#include "seed.h"

__global__ void hand_over(int *out) {
    __shared__ int value, flag;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x == 64) {
        value = 42;
        __hip_atomic_store(&flag, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_WORKGROUP);
    }
    if (threadIdx.x == 0) {
        while (__hip_atomic_load(&flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_WORKGROUP) == 0) __builtin_amdgcn_s_sleep(1);
        *out = value;
    }
}
int main() {
    int *out = device<int>(1);
    hand_over<<<1, 128>>>(out);
    return pass(host(out, 1)[0] == 42);
}
