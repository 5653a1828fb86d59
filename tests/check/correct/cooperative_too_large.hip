// check: correct
#include "program.h"

__global__ void together(int* data) {
    cooperative_groups::this_grid().sync();
    if (threadIdx.x == 0) data[blockIdx.x] = 1;
}

int main() {
    unsigned blocks = 16;
    int* data = zeros<int>(blocks);
    void* arguments[] = {&data};
    (void)hipLaunchCooperativeKernel(together, dim3(blocks), dim3(64), arguments, 0, nullptr);
    return finish(data);
}
