// check: kind=uninitialized-read kernel=choose
#include "seed.h"

__global__ void choose(int *out, const int *flag) {
    if (flag[threadIdx.x] > 0) // BUG
        out[threadIdx.x] = 1;
    else
        atomicAdd(out, 2);
}
int main() {
    int *out = device(std::vector<int>(64)), *flag = device<int>(64);
    choose<<<1, 64>>>(out, flag);
    return end(out);
}
