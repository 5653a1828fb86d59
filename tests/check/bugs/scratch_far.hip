// check: kind=out-of-bounds kernel=local
#include "seed.h"

__global__ void local(int *out, const int *index) {
    int values[32];
    for (int i = 0; i < 32; ++i) values[index[i % 4] + i] = i; // BUG
    out[threadIdx.x] = values[index[1]];
}
int main() {
    int *out = device<int>(64), *index = device(std::vector<int>{0, 0, 0, 100000});
    local<<<1, 64>>>(out, index);
    return end(out);
}
