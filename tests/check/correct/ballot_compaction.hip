// check: correct
#include "program.h"

__global__ void compact(const int* in, int* out, int* count) {
    int i = threadIdx.x;
    bool keep = in[i] % 3 == 0;
    unsigned long long mask = __ballot(keep);
    int at = __popcll(mask & ((1ull << i) - 1));
    if (keep) out[at] = in[i];
    if (i == 0) *count = __popcll(mask);
}

int main() {
    std::vector<int> host(64);
    for (int i = 0; i < 64; i++) host[i] = i;
    int *in = raw<int>(64), *out = raw<int>(22), *count = raw<int>(1);
    if (hipMemcpy(in, host.data(), 256, hipMemcpyHostToDevice) != hipSuccess) return 2;
    compact<<<1, 64>>>(in, out, count);
    return finish(in, out, count);
}
