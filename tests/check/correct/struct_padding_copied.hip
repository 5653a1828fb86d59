// check: correct
#include "program.h"

struct Padded {
    char small;
    double large;
};

__global__ void make(Padded* out) {
    out[threadIdx.x].small = 1;
    out[threadIdx.x].large = 2;
}

__global__ void copy(const Padded* in, Padded* out) { out[threadIdx.x] = in[threadIdx.x]; }

int main() {
    Padded *first = raw<Padded>(64), *second = raw<Padded>(64);
    make<<<1, 64>>>(first);
    copy<<<1, 64>>>(first, second);
    (void)hipMemcpy(first, second, 64 * sizeof(Padded), hipMemcpyDeviceToDevice);
    return finish(first, second);
}
