// check: correct
#include "program.h"

__global__ void fill(double* data, int count) {
    int i = threadIdx.x;
    if (i < count)
        data[i] = i;
}

int main() {
    double* data = nullptr;
    if (hipMalloc(&data, 100 * sizeof(double)) != hipSuccess) return 2;
    fill<<<1, 128>>>(data, 100);
    return finish(data);
}
