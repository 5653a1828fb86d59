// check: kind=misaligned kernel=bump
#include "seed.h"

__global__ void bump(char *bytes) {
    atomicAdd(reinterpret_cast<int *>(bytes + 1), 1); // BUG
}
int main() {
    char *bytes = device(std::vector<char>(64));
    bump<<<1, 1>>>(bytes);
    return end(bytes);
}
