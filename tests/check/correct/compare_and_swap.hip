// check: correct
#include "seed.h"

__global__ void maximum(float *out, const float *in) {
    int *word = reinterpret_cast<int *>(out), old = *word, assumed;
    do {
        assumed = old;
        if (__int_as_float(assumed) >= in[blockIdx.x * 64 + threadIdx.x]) break;
        old = atomicCAS(word, assumed, __float_as_int(in[blockIdx.x * 64 + threadIdx.x]));
    } while (old != assumed);
}
int main() {
    std::vector<float> values(128);
    for (int i = 0; i < 128; ++i) values[i] = static_cast<float>(i * 37 % 128);
    float *out = device(std::vector<float>(1)), *in = device(values);
    maximum<<<1, 64>>>(out, in);
    return pass(host(out, 1)[0] > 0);
}
