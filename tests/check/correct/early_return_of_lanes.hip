// check: correct
#include "program.h"

__global__ void early(int* data, int count) {
    __shared__ int tile[100];
    int i = threadIdx.x;
    if (i >= count) return;
    tile[i] = i;
    __syncthreads();
    data[i] = tile[count - 1 - i];
}

int main() {
    int* data = raw<int>(100);
    early<<<1, 128>>>(data, 100);
    return finish(data);
}
