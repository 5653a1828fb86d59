// check: correct
#include "program.h"

__global__ void find(const float* in, int* out, int count) {
    int i = threadIdx.x;
    if (i < count && in[i] == 1.0f)
        *out = 1;
}

int main() {
    const int count = 48;
    float* in = raw<float>(count);
    int* out = zeros<int>(1);
    (void)hipMemset(in, 0, count * sizeof(float));
    find<<<1, 64>>>(in, out, count);
    return finish(in, out);
}
