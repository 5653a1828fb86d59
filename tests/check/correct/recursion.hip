// check: correct
#include "program.h"

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__global__ void numbers(int* out) { out[threadIdx.x] = fibonacci(threadIdx.x % 8); }

int main() {
    int* out = raw<int>(64);
    numbers<<<1, 64>>>(out);
    return finish(out);
}
