// check: correct
#include "seed.h"

__global__ void chain(int *out, volatile int *flag) {
    if (threadIdx.x == 0) {
        while (*flag != static_cast<int>(blockIdx.x)) {
        }
        __threadfence();
        *out = *out * 2 + 1;
        __threadfence();
        *flag = blockIdx.x + 1;
    }
}
int main() {
    int *out = device(std::vector<int>(1)), *flag = device(std::vector<int>(1));
    chain<<<10, 64>>>(out, flag);
    return pass(host(out, 1)[0] == 1023);
}
