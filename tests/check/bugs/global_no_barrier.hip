// check: kind=block-race kernel=neighbours
#include "program.h"

__global__ void neighbours(int* data, int* out) {
    int i = threadIdx.x;
    data[i] = i; // BUG
    out[i] = data[(i + 64) % 128]; // BUG
}

int main() {
    int *data = raw<int>(128), *out = raw<int>(128);
    neighbours<<<1, 128>>>(data, out);
    return finish(data, out);
}
