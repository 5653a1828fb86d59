// check: correct
#include "seed.h"

__global__ void total(double *out, const double *in) {
    auto *word = reinterpret_cast<unsigned long long *>(out);
    unsigned long long old = *word, assumed;
    do {
        assumed = old;
        double sum = __longlong_as_double(static_cast<long long>(assumed)) + in[blockIdx.x * 64 + threadIdx.x];
        old = atomicCAS(word, assumed, static_cast<unsigned long long>(__double_as_longlong(sum)));
    } while (old != assumed);
}
int main() {
    double *out = device(std::vector<double>(1)), *in = device(std::vector<double>(16 * 64, 0.5));
    total<<<16, 64>>>(out, in);
    return pass(host(out, 1)[0] == 512);
}
