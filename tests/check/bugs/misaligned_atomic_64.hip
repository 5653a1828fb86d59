// check: kind=misaligned kernel=bump_long
#include "seed.h"

__global__ void bump_long(int *words) {
    atomicAdd(reinterpret_cast<unsigned long long *>(words + 1), 1ull); // BUG
}
int main() {
    int *words = device(std::vector<int>(64));
    bump_long<<<1, 1>>>(words);
    return end(words);
}
