// check: kind=out-of-bounds kernel=read_past_end
#include "program.h"

__global__ void read_past_end(const int* data, int* out) {
    int i = threadIdx.x;
    int value = data[i + 1]; // BUG
    out[i] = value;
}

int main() {
    int *data = zeros<int>(64), *out = raw<int>(64);
    read_past_end<<<1, 64>>>(data, out);
    return finish(data, out);
}
