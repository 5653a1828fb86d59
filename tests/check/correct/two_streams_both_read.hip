// check: correct
#include "program.h"

__global__ void copy(const int* in, int* out) { out[threadIdx.x] = in[threadIdx.x]; }

int main() {
    int *in = zeros<int>(64), *first_out = raw<int>(64), *second_out = raw<int>(64);
    if (hipDeviceSynchronize() != hipSuccess) return 2;
    hipStream_t first, second;
    if (hipStreamCreate(&first) != hipSuccess || hipStreamCreate(&second) != hipSuccess) return 2;
    copy<<<1, 64, 0, first>>>(in, first_out);
    copy<<<1, 64, 0, second>>>(in, second_out);
    return finish(in, first_out, second_out);
}
