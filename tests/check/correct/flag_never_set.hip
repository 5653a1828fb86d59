// check: correct
#include "program.h"

__global__ void wait_for(int* flag) {
    while (atomicAdd(flag, 0) == 0)
        __builtin_amdgcn_s_sleep(10);
    *flag = 2;
}

int main() {
    int* flag = zeros<int>(1);
    (void)hipMemset(flag, 1, 1);
    wait_for<<<1, 1>>>(flag);
    return finish(flag);
}
