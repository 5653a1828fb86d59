// check: correct
#include "seed.h"

__global__ void add(int *values) {
    values[threadIdx.x] += 1;
}
int main() {
    hipStream_t stream;
    (void)hipStreamCreate(&stream);
    int called = 0, *values = device(numbers(64));
    add<<<1, 64, 0, stream>>>(values);
    (void)hipLaunchHostFunc(stream, [](void *word) { *static_cast<int *>(word) += 1; }, &called);
    add<<<1, 64, 0, stream>>>(values);
    (void)hipStreamSynchronize(stream);
    return pass(called == 1 && host(values, 64)[0] == 2);
}
