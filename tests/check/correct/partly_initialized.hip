// check: correct
#include "seed.h"

__global__ void fill(int *values, int n) {
    if (static_cast<int>(threadIdx.x) < n) values[threadIdx.x] = threadIdx.x;
}
__global__ void sum(int *out, const int *values, int n) {
    int total = 0;
    for (int i = 0; i < n; ++i) total += values[i];
    *out = total;
}
int main() {
    int *out = device<int>(1), *values = device<int>(1000);
    fill<<<1, 256>>>(values, 100);
    sum<<<1, 1>>>(out, values, 100);
    return pass(host(out, 1)[0] == 4950);
}
