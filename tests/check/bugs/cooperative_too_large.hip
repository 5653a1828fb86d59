// check: kind=cooperative-too-large kernel=together
#include "program.h"

__global__ void together(int* data) {
    cooperative_groups::this_grid().sync();
    if (threadIdx.x == 0) data[blockIdx.x] = 1;
}

int main() {
    unsigned blocks = 1000000;
    int* data = zeros<int>(blocks);
    void* arguments[] = {&data};
    (void)hipLaunchCooperativeKernel(together, dim3(blocks), dim3(64), arguments, 0, nullptr); // BUG
    return finish(data);
}
