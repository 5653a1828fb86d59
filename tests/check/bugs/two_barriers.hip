// check: kind=divergent-barrier kernel=split
#include "seed.h"

__global__ void split(int *out) {
    int i = threadIdx.x;
    if (i < 64) {
        out[i] = 1;
        __syncthreads(); // BUG
        out[i] += 1;
    } else {
        out[i] = 2;
        __syncthreads(); // BUG
        out[i] += 3;
    }
}
int main() {
    int *out = device(std::vector<int>(128));
    split<<<1, 128>>>(out);
    return end(out);
}
