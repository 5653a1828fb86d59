// check: correct args=--leaks
#include "program.h"

__global__ void add_one(int* data) { data[threadIdx.x] += 1; }

int main() {
    int* data = nullptr;
    if (hipHostMalloc(reinterpret_cast<void**>(&data), 256) != hipSuccess) return 2;
    for (int i = 0; i < 64; i++) data[i] = i;
    add_one<<<1, 64>>>(data);
    if (hipDeviceSynchronize() != hipSuccess) return 2;
    int wrong = data[5] != 6;
    return hipHostFree(data) == hipSuccess ? wrong : 2;
}
