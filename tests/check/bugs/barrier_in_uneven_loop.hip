// check: kind=divergent-barrier kernel=uneven
#include "seed.h"

__global__ void uneven(int *out, const int *rounds) {
    int i = threadIdx.x;
    for (int round = 0; round < rounds[i]; ++round) {
        out[i] += round;
        __syncthreads(); // BUG
    }
    out[i] *= 2;
}
int main() {
    int *out = device(std::vector<int>(64)), *rounds = device(numbers(64));
    uneven<<<1, 64>>>(out, rounds);
    return end(out);
}
