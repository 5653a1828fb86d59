// check: correct
#include "program.h"

// Within a wave the end of the reduction needs no barrier of the block.
__global__ void reduce(const int* in, int* out) {
    __shared__ volatile int sums[128];
    int i = threadIdx.x;
    sums[i] = in[i];
    __syncthreads();
    if (i < 64) {
        sums[i] = sums[i] + sums[i + 64];
        for (int half = 32; half > 0; half /= 2) {
            __builtin_amdgcn_wave_barrier();
            if (i < half) sums[i] = sums[i] + sums[i + half];
        }
        if (i == 0) *out = sums[0];
    }
}

int main() {
    int *in = zeros<int>(128), *out = raw<int>(1);
    reduce<<<1, 128>>>(in, out);
    return finish(in, out);
}
