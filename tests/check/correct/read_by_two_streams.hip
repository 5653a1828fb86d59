// check: correct
#include "seed.h"

__global__ void scale(int *out, const int *in, int factor) {
    out[threadIdx.x] = in[threadIdx.x] * factor;
}
int main() {
    hipStream_t one, two;
    (void)hipStreamCreateWithFlags(&one, hipStreamNonBlocking);
    (void)hipStreamCreateWithFlags(&two, hipStreamNonBlocking);
    int *in = device(numbers(64)), *a = device<int>(64), *b = device<int>(64);
    scale<<<1, 64, 0, one>>>(a, in, 2);
    scale<<<1, 64, 0, two>>>(b, in, 3);
    (void)hipStreamSynchronize(one);
    (void)hipStreamSynchronize(two);
    return pass(host(a, 64)[5] == 10 && host(b, 64)[5] == 15);
}
