// check: kind=endless-wait kernel=wait_for args=--sim-kernel-timeout,1
#include "program.h"

__global__ void wait_for(int* flag) {
    while (atomicAdd(flag, 0) == 0) // BUG
        __builtin_amdgcn_s_sleep(10); // BUG
    *flag = 2;
}

int main() {
    int* flag = zeros<int>(1);
    wait_for<<<1, 1>>>(flag);
    return finish(flag);
}
