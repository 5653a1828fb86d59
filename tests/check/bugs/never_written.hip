// check: kind=uninitialized-read kernel=total
#include "seed.h"

__global__ void total(int *out, const int *in, int n) {
    int sum = 0;
    for (int i = 0; i < n; ++i) sum += in[i]; // BUG
    *out = sum;
}
int main() {
    int *out = device<int>(1), *in = device<int>(64);
    total<<<1, 1>>>(out, in, 64);
    return end(out);
}
