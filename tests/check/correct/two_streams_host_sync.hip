// check: correct
#include "program.h"

__global__ void write_all(int* data) { data[threadIdx.x] = threadIdx.x; }
__global__ void add_one(int* data) { data[threadIdx.x] += 1; }

int main() {
    int* data = raw<int>(64);
    hipStream_t first, second;
    if (hipStreamCreate(&first) != hipSuccess || hipStreamCreate(&second) != hipSuccess) return 2;
    write_all<<<1, 64, 0, first>>>(data);
    if (hipStreamSynchronize(first) != hipSuccess) return 2;
    add_one<<<1, 64, 0, second>>>(data);
    while (hipStreamQuery(second) == hipErrorNotReady) {}
    add_one<<<1, 64, 0, first>>>(data);
    return finish(data);
}
