// check: kind=out-of-bounds kernel=write_past_end
#include "program.h"

__global__ void write_past_end(int* data, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= count)
        data[i] = i; // BUG
}

int main() {
    int* data = raw<int>(100);
    write_past_end<<<2, 64>>>(data, 100);
    return finish(data);
}
