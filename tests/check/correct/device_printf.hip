// check: none
#include "seed.h"

__global__ void speak(int *out) {
    if (threadIdx.x == 0) printf("block %d says %s\n", static_cast<int>(blockIdx.x), "hello");
    out[blockIdx.x * 64 + threadIdx.x] = 1;
}
int main() {
    int *out = device<int>(128);
    speak<<<2, 64>>>(out);
    return pass(host(out, 128)[127] == 1);
}
