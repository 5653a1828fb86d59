// check: kind=endless-wait kernel=chain args=--sim-kernel-timeout,1
#include "program.h"

__global__ void chain(int* turn) {
    if (threadIdx.x != 0) return;
    int own = blockIdx.x;
    while (atomicAdd(turn, 0) != own) // BUG
        __builtin_amdgcn_s_sleep(10); // BUG
    if (own != 2) atomicAdd(turn, 1);
}

int main() {
    int* turn = zeros<int>(1);
    chain<<<4, 64>>>(turn);
    return finish(turn);
}
