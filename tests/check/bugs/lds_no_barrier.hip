// check: kind=block-race kernel=reverse
#include "program.h"

__global__ void reverse(int* data) {
    __shared__ int tile[256];
    int i = threadIdx.x;
    tile[i] = data[i];
    data[i] = tile[255 - i]; // BUG
}

int main() {
    int* data = zeros<int>(256);
    reverse<<<1, 256>>>(data);
    return finish(data);
}
