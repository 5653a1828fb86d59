// check: kind=out-of-bounds kernel=count_up
#include "program.h"

__device__ int counters[10];

__global__ void count_up() {
    int i = threadIdx.x;
    if (i < 11)
        counters[i] += 1; // BUG
}

int main() {
    count_up<<<1, 64>>>();
    return finish();
}
