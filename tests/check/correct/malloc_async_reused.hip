// check: correct args=--leaks
#include "program.h"

__global__ void fill(int* data, int value) { data[threadIdx.x] = value; }

int main() {
    hipStream_t stream;
    if (hipStreamCreate(&stream) != hipSuccess) return 2;
    for (int i = 0; i < 4; i++) {
        void* data = nullptr;
        if (hipMallocAsync(&data, 256, stream) != hipSuccess) return 2;
        fill<<<1, 64, 0, stream>>>(static_cast<int*>(data), i);
        if (hipFreeAsync(data, stream) != hipSuccess) return 2;
    }
    if (hipStreamSynchronize(stream) != hipSuccess) return 2;
    return hipStreamDestroy(stream) == hipSuccess ? 0 : 2;
}
