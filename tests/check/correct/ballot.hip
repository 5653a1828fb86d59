// check: correct
#include "seed.h"

__global__ void count(int *out, const int *in) {
    unsigned long long odd = __ballot(in[threadIdx.x] % 2);
    if (threadIdx.x % 64 == 0) atomicAdd(out, __popcll(odd));
}
int main() {
    int *out = device(std::vector<int>(1)), *in = device(numbers(256));
    count<<<1, 256>>>(out, in);
    return pass(host(out, 1)[0] == 128);
}
