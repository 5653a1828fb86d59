// check: correct
#include "seed.h"
#include <hip/hip_cooperative_groups.h>

__global__ void steps(int *values, int n) {
    auto grid = cooperative_groups::this_grid();
    int i = grid.thread_rank();
    for (int step = 0; step < 3; ++step) {
        int next = values[(i + 1) % n];
        grid.sync();
        values[i] = next + 1;
        grid.sync();
    }
}
int main() {
    int n = 512, *values = device(numbers(512));
    void *arguments[] = {&values, &n};
    (void)hipLaunchCooperativeKernel(reinterpret_cast<const void *>(steps), dim3(4), dim3(128), arguments, 0, nullptr);
    return pass(host(values, 512)[0] == 6);
}
