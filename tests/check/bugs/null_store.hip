// check: kind=null-pointer kernel=start
#include "seed.h"

__global__ void start(int *out) {
    out[threadIdx.x] = 1; // BUG
}
int main() {
    int *unused = device<int>(64);
    start<<<1, 64>>>(nullptr);
    return end(unused);
}
