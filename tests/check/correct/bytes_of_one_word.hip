// check: correct
#include "program.h"

// Threads of two waves and of two blocks write neighbouring bytes.
__global__ void bytes(unsigned char* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i % 2 * 128 + i / 2] = i;
}

int main() {
    auto* out = raw<unsigned char>(256);
    bytes<<<2, 128>>>(out);
    return finish(out);
}
