// check: correct
#include "program.h"

__global__ void reverse(int* data) {
    __shared__ int tile[256];
    int i = threadIdx.x;
    tile[i] = data[i];
    __syncthreads();
    data[i] = tile[255 - i];
}

int main() {
    int* data = zeros<int>(256);
    reverse<<<1, 256>>>(data);
    return finish(data);
}
