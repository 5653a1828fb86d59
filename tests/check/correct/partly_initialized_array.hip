// check: correct
#include "program.h"

__global__ void fill(int* data, int count) {
    if (static_cast<int>(threadIdx.x) < count) data[threadIdx.x] = threadIdx.x;
}

__global__ void sum(const int* data, int count, int* out) {
    int sum = 0;
    for (int i = 0; i < count; i++) sum += data[i] > 3 ? data[i] : 0;
    *out = sum;
}

int main() {
    int *data = raw<int>(100), *out = raw<int>(1);
    fill<<<1, 64>>>(data, 40);
    sum<<<1, 1>>>(data, 40, out);
    return finish(data, out);
}
