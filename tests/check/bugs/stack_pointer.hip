// check: kind=host-pointer kernel=take
#include "seed.h"

__global__ void take(int *out, const int *in) {
    out[threadIdx.x] = in[threadIdx.x]; // BUG
}
int main() {
    int local[64] = {1};
    int *out = device<int>(64);
    take<<<1, 64>>>(out, local);
    return end(out);
}
