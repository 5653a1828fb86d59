// check: kind=uninitialized-read kernel=publish
#include "seed.h"

__global__ void publish(int *slots, int *out, const int *in) {
    int old = atomicExch(&slots[threadIdx.x], in[threadIdx.x]); // BUG
    if (old > 3) out[threadIdx.x] = 1;
}
int main() {
    int *slots = device<int>(64), *out = device(std::vector<int>(64)), *in = device(numbers(64));
    publish<<<1, 64>>>(slots, out, in);
    return end(out);
}
