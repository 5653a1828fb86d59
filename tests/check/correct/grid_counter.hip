// check: correct
#include "program.h"

__global__ void count_blocks(int* count) {
    if (threadIdx.x == 0)
        atomicAdd(count, 1);
}

int main() {
    int* count = zeros<int>(1);
    count_blocks<<<16, 64>>>(count);
    return finish(count);
}
