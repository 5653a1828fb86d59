// check: kind=uninitialized-read kernel=sum_first
#include "program.h"

__global__ void sum_first(const int* count, const int* in, int* out) {
    int sum = 0, end = *count;
    for (int i = 0; i < end && i < 64; i++) // BUG
        sum += in[i];
    *out = sum;
}

int main() {
    int *count = raw<int>(1), *in = zeros<int>(64), *out = raw<int>(1);
    sum_first<<<1, 1>>>(count, in, out);
    return finish(count, in, out);
}
