// check: kind=uninitialized-read kernel=gather
#include "seed.h"

__global__ void gather(int *out, const int *in, const int *index) {
    int i = index[threadIdx.x]; // BUG
    out[threadIdx.x] = in[i];
}
int main() {
    int *out = device<int>(64), *in = device(numbers(64)), *index = device<int>(64);
    gather<<<1, 64>>>(out, in, index);
    return end(out);
}
