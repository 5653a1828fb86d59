// check: kind=grid-race kernel=count_blocks
#include "program.h"

__global__ void count_blocks(int* count) {
    if (threadIdx.x == 0)
        *count = *count + 1; // BUG
}

int main() {
    int* count = zeros<int>(1);
    count_blocks<<<16, 64>>>(count);
    return finish(count);
}
