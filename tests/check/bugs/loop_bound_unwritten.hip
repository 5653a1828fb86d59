// check: kind=uninitialized-read kernel=repeat
#include "seed.h"

__global__ void repeat(int *out, const int *count) {
    int n = count[0] & 3, sum = 0; // BUG
    for (int i = 0; i < n; ++i) sum += i;
    out[threadIdx.x] = sum;
}
int main() {
    int *out = device<int>(64), *count = nullptr;
    (void)hipMallocAsync(reinterpret_cast<void **>(&count), 4, nullptr);
    repeat<<<1, 64>>>(out, count);
    return end(out);
}
