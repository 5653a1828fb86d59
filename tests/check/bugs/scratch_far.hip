// check: kind=out-of-bounds kernel=local_array
#include "program.h"

__global__ void local_array(int* out, const int* index) {
    volatile int local[16];
    for (int i = 0; i < 16; i++) local[i] = i;
    int i = threadIdx.x;
    local[index[i]] = 7; // BUG
    out[i] = local[i & 15];
}

int main() {
    std::vector<int> index(64, 3);
    index[5] = 1 << 20;
    int *out = raw<int>(64), *where = raw<int>(64);
    (void)hipMemcpy(where, index.data(), 64 * sizeof(int), hipMemcpyHostToDevice);
    local_array<<<1, 64>>>(out, where);
    return finish(out, where);
}
