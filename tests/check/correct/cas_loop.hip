// check: correct
#include "program.h"

__device__ void add(double* address, double value) {
    auto* bits = reinterpret_cast<unsigned long long*>(address);
    unsigned long long old = *bits, assumed;
    do {
        assumed = old;
        old = atomicCAS(bits, assumed, __double_as_longlong(__longlong_as_double(assumed) + value));
    } while (old != assumed);
}

__global__ void sum(double* out) { add(out, threadIdx.x); }

int main() {
    double* out = zeros<double>(1);
    sum<<<4, 64>>>(out);
    return finish(out);
}
