// check: correct
#include "seed.h"

__global__ void produce_and_consume(int *out, int *data, int *flag) {
    if (blockIdx.x == 0) {
        data[threadIdx.x] = threadIdx.x + 1;
        __syncthreads();
        if (threadIdx.x == 0) __hip_atomic_store(flag, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
    } else {
        while (__hip_atomic_load(flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) == 0) __builtin_amdgcn_s_sleep(1);
        out[threadIdx.x] = data[threadIdx.x];
    }
}
int main() {
    int *out = device<int>(64), *data = device<int>(64), *flag = device(std::vector<int>(1));
    produce_and_consume<<<2, 64>>>(out, data, flag);
    return pass(host(out, 64)[63] == 64);
}
