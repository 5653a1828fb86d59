// check: kind=uninitialized-read kernel=count_positive
#include "program.h"

__global__ void count_positive(const int* in, int* out) {
    if (in[threadIdx.x] > 0) // BUG
        atomicAdd(out, 1);
}

int main() {
    int *in = raw<int>(64), *out = zeros<int>(1);
    (void)hipMemset(in, 0, 60 * sizeof(int));
    count_positive<<<1, 64>>>(in, out);
    return finish(in, out);
}
