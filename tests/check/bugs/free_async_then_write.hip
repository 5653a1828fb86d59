// check: kind=use-after-free kernel=touch
#include "program.h"

__global__ void touch(int* data) {
    data[threadIdx.x] = 1; // BUG
}

int main() {
    hipStream_t stream;
    if (hipStreamCreate(&stream) != hipSuccess) return 2;
    void* data = nullptr;
    if (hipMallocAsync(&data, 256, stream) != hipSuccess) return 2;
    (void)hipFreeAsync(data, stream);
    touch<<<1, 64, 0, stream>>>(static_cast<int*>(data));
    (void)hipStreamSynchronize(stream);
    (void)hipStreamDestroy(stream);
    return 0;
}
