// check: kind=divergent-barrier kernel=half
#include "seed.h"

__global__ void half(int *out, int n) {
    int i = threadIdx.x;
    if (i < n) {
        out[i] = 1;
        __syncthreads(); // BUG
    }
    out[i] += 2;
}
int main() {
    int *out = device(std::vector<int>(64));
    half<<<1, 64>>>(out, 32);
    return end(out);
}
