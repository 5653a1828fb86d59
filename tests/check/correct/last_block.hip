// check: correct
#include "seed.h"

__global__ void sum(int *out, int *parts, unsigned *done, const int *in) {
    __shared__ bool is_last;
    if (threadIdx.x == 0) {
        int part = 0;
        for (int i = 0; i < 64; ++i) part += in[blockIdx.x * 64 + i];
        parts[blockIdx.x] = part;
        __threadfence();
        is_last = atomicAdd(done, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (is_last && threadIdx.x == 0) {
        int total = 0;
        for (unsigned i = 0; i < gridDim.x; ++i) total += parts[i];
        *out = total;
    }
}
int main() {
    int *out = device<int>(1), *parts = device<int>(16), *in = device(numbers(1024));
    unsigned *done = device(std::vector<unsigned>(1));
    sum<<<16, 64>>>(out, parts, done, in);
    return pass(host(out, 1)[0] == 1023 * 512);
}
