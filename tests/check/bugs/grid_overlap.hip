// check: kind=grid-race kernel=fill_blocks
#include "program.h"

__global__ void fill_blocks(int* data, int stride) {
    data[blockIdx.x * stride + threadIdx.x] = blockIdx.x; // BUG
}

int main() {
    int* data = raw<int>(8 * 64);
    fill_blocks<<<8, 64>>>(data, 63);
    return finish(data);
}
