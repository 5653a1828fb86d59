// check: correct
#include "seed.h"

__global__ void maybe(int *out, int flag) {
    __shared__ int tile[128];
    if (flag > 3) {
        tile[threadIdx.x] = threadIdx.x;
        __syncthreads();
        out[threadIdx.x] = tile[127 - threadIdx.x];
    } else {
        __syncthreads();
        out[threadIdx.x] = 0;
    }
}
int main() {
    int *out = device<int>(128);
    maybe<<<1, 128>>>(out, 5);
    bool is_right = host(out, 128)[0] == 127;
    maybe<<<1, 128>>>(out, 1);
    return pass(is_right && host(out, 128)[0] == 0);
}
