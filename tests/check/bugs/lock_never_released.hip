// check: kind=endless-wait kernel=locked args=--sim-kernel-timeout,1
#include "seed.h"

__global__ void locked(int *out, int *lock) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) { // BUG
        }
        out[0] += 1;
    }
}
int main() {
    int *out = device(std::vector<int>(1)), *lock = device(std::vector<int>(1));
    locked<<<2, 64>>>(out, lock);
    return end(out);
}
