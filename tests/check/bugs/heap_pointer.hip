// check: kind=host-pointer kernel=give
#include "seed.h"

__global__ void give(int *out) {
    out[threadIdx.x] = threadIdx.x; // BUG
}
int main() {
    std::vector<int> values(1 << 20);
    int *other = device<int>(1);
    give<<<1, 64>>>(values.data());
    return end(other);
}
