// check: kind=out-of-bounds kernel=follow
#include "program.h"

__global__ void follow(const int* next, int* out, int steps) {
    int at = threadIdx.x;
    for (int i = 0; i < steps; i++)
        at = next[at]; // BUG
    out[threadIdx.x] = at;
}

int main() {
    std::vector<int> host(64);
    for (int i = 0; i < 64; i++) host[i] = i + 1;
    int *next = raw<int>(64), *out = raw<int>(64);
    (void)hipMemcpy(next, host.data(), 64 * sizeof(int), hipMemcpyHostToDevice);
    follow<<<1, 64>>>(next, out, 4);
    return finish(next, out);
}
