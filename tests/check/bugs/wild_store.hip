// check: kind=wild-pointer kernel=poke
#include "seed.h"

__global__ void poke(int *out) {
    *out = 1; // BUG
}
int main() {
    int *other = device<int>(1);
    poke<<<1, 1>>>(reinterpret_cast<int *>(0x123456780));
    return end(other);
}
