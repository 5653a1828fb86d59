// check: kind=endless-wait kernel=wait args=--sim-kernel-timeout,1
#include "seed.h"

__global__ void wait(int *out, int *flag) {
    while (__hip_atomic_load(flag, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 0) __builtin_amdgcn_s_sleep(1); // BUG
    *out = 1;
}
int main() {
    int *out = device(std::vector<int>(1)), *flag = device(std::vector<int>(1));
    wait<<<1, 64>>>(out, flag);
    return end(out);
}
