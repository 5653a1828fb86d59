// check: correct
#include "program.h"

__global__ void touch(int* data) {
    data[threadIdx.x] = 1;
}

int main() {
    hipStream_t stream;
    if (hipStreamCreate(&stream) != hipSuccess) return 2;
    void* data = nullptr;
    if (hipMallocAsync(&data, 256, stream) != hipSuccess) return 2;
    touch<<<1, 64, 0, stream>>>(static_cast<int*>(data));
    (void)hipFreeAsync(data, stream);
    (void)hipStreamSynchronize(stream);
    (void)hipStreamDestroy(stream);
    return 0;
}
