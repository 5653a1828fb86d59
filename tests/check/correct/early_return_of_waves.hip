// check: correct
#include "program.h"

__global__ void early(int* data, int count) {
    int i = threadIdx.x;
    if (i >= count) return;
    data[i] = i;
    __syncthreads();
    data[i] += data[(i + 64) % count];
}

int main() {
    int* data = raw<int>(256);
    if (hipMemset(data, 0, 1024) != hipSuccess) return 2;
    early<<<1, 64>>>(data, 64);
    return finish(data);
}
