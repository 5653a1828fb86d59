// check: kind=out-of-bounds kernel=gather
#include "program.h"

template <class T, int Stride> __global__ void gather(const T* in, T* out) {
    int i = threadIdx.x;
    out[i] = in[i * Stride]; // BUG
}

int main() {
    short *in = zeros<short>(128), *out = raw<short>(64);
    gather<short, 3><<<1, 64>>>(in, out);
    return finish(in, out);
}
