// check: kind=grid-race kernel=add_block
#include "seed.h"

__global__ void add_block(int *total) {
    if (threadIdx.x == 0) *total += blockIdx.x + 1; // BUG
}
int main() {
    int *total = device(std::vector<int>(1));
    add_block<<<8, 64>>>(total);
    return end(total);
}
