// check: correct
#include "seed.h"

__device__ __noinline__ int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
__global__ void compute(int *out) {
    out[threadIdx.x] = fibonacci(threadIdx.x % 8);
}
int main() {
    int *out = device<int>(64);
    compute<<<1, 64>>>(out);
    return pass(host(out, 64)[7] == 13);
}
