// check: kind=out-of-bounds kernel=reverse
#include "seed.h"

template <class T>
__global__ void reverse(T *out, const T *in, int n) {
    int i = threadIdx.x;
    out[i] = in[n - i]; // BUG
}
int main() {
    double *out = device<double>(64), *in = device(std::vector<double>(64, 1.5));
    reverse<double><<<1, 64>>>(out, in, 64);
    return end(out);
}
