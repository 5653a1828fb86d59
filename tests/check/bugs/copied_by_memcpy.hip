// check: kind=uninitialized-read kernel=use_copy
#include "program.h"

__global__ void use_copy(const int* in, int* out) {
    if (in[threadIdx.x] == 3) // BUG
        *out = 1;
}

int main() {
    int *first = raw<int>(64), *second = raw<int>(64), *out = zeros<int>(1);
    (void)hipMemcpy(second, first, 64 * sizeof(int), hipMemcpyDeviceToDevice);
    use_copy<<<1, 64>>>(second, out);
    return finish(first, second, out);
}
