// check: correct
#include "program.h"

__global__ void fill(int* data, int value) { data[threadIdx.x] = value; }

int main() {
    int* data = raw<int>(128);
    hipStream_t first, second;
    if (hipStreamCreate(&first) != hipSuccess || hipStreamCreate(&second) != hipSuccess) return 2;
    fill<<<1, 64, 0, first>>>(data, 1);
    fill<<<1, 64, 0, second>>>(data + 64, 2);
    return finish(data);
}
