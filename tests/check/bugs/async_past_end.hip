// check: kind=out-of-bounds kernel=mark
#include "seed.h"

__global__ void mark(unsigned char *flags) {
    flags[threadIdx.x + 1] = 1; // BUG
}
int main() {
    unsigned char *flags = nullptr;
    (void)hipMallocAsync(reinterpret_cast<void **>(&flags), 100, nullptr);
    mark<<<1, 100>>>(flags);
    return end(flags);
}
