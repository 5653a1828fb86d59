// check: correct
#include "seed.h"

__global__ void add(unsigned long long *out, double *sum) {
    atomicAdd(out, 1ull << 32);
    atomicAdd(sum, 0.5);
}
int main() {
    auto *out = device(std::vector<unsigned long long>(1));
    double *sum = device(std::vector<double>(1));
    add<<<4, 64>>>(out, sum);
    return pass(host(out, 1)[0] == 256ull << 32 && host(sum, 1)[0] == 128);
}
