// check: correct
#include "seed.h"

__global__ void copy(char *to, const char *from, int words) {
    for (int i = threadIdx.x; i < words; i += blockDim.x) __builtin_memcpy(to + 1 + i * 4, from + 3 + i * 4, 4);
}
int main() {
    std::vector<char> values(1003);
    for (int i = 0; i < 1003; ++i) values[i] = static_cast<char>(i);
    char *to = device<char>(1001), *from = device(values);
    copy<<<1, 64>>>(to, from, 250);
    return pass(host(to, 1001)[1000] == static_cast<char>(1002));
}
