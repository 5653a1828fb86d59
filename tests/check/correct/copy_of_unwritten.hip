// check: correct
#include "seed.h"

__global__ void move(int *to, const int *from) {
    to[threadIdx.x] = from[threadIdx.x];
}
__global__ void first(int *out, const int *values) {
    out[threadIdx.x] = values[threadIdx.x] + 1;
}
int main() {
    int *out = device<int>(10), *to = device<int>(64), *from = device<int>(64);
    (void)hipMemset(from, 0, 40);
    move<<<1, 64>>>(to, from);
    first<<<1, 10>>>(out, to);
    return pass(host(out, 10)[9] == 1);
}
