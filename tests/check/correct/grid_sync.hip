// check: correct
#include "program.h"

__global__ void phases(int* data) {
    auto grid = cooperative_groups::this_grid();
    int i = grid.thread_rank(), n = grid.size();
    data[i] = i;
    grid.sync();
    int other = data[n - 1 - i];
    grid.sync();
    data[i] = other;
}

int main() {
    int* data = raw<int>(512);
    void* arguments[] = {&data};
    if (hipLaunchCooperativeKernel(phases, dim3(4), dim3(128), arguments, 0, nullptr) != hipSuccess) return 2;
    return finish(data);
}
