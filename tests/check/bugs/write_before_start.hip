// check: kind=out-of-bounds kernel=shift_left
#include "program.h"

__global__ void shift_left(int* out, int by) {
    int i = threadIdx.x;
    out[i - by] = i; // BUG
}

int main() {
    int* out = raw<int>(128);
    shift_left<<<1, 64>>>(out, 3);
    return finish(out);
}
