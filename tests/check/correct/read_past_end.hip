// check: correct
#include "program.h"

__global__ void read_past_end(const int* data, int* out) {
    int i = threadIdx.x;
    int value = data[i];
    out[i] = value;
}

int main() {
    int *data = zeros<int>(64), *out = raw<int>(64);
    read_past_end<<<1, 64>>>(data, out);
    return finish(data, out);
}
