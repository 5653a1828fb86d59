// check: kind=out-of-bounds kernel=fill
#include "program.h"

__global__ void fill(double* data, int count) {
    int i = threadIdx.x;
    if (i < count)
        data[i] = i; // BUG
}

int main() {
    double* data = nullptr;
    if (hipMalloc(&data, 100 * sizeof(float)) != hipSuccess) return 2;
    fill<<<1, 128>>>(data, 100);
    return finish(data);
}
