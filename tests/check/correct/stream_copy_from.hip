// check: correct
#include "program.h"

__global__ void produce(int* data) {
    data[threadIdx.x] = threadIdx.x;
}

int main() {
    int *data = zeros<int>(64), *pinned = nullptr;
    if (hipHostMalloc(reinterpret_cast<void**>(&pinned), 256) != hipSuccess) return 2;
    (void)hipDeviceSynchronize();
    hipStream_t copies, kernels;
    if (hipStreamCreate(&copies) != hipSuccess || hipStreamCreate(&kernels) != hipSuccess) return 2;
    produce<<<1, 64, 0, kernels>>>(data);
    (void)hipStreamSynchronize(kernels);
    (void)hipMemcpyAsync(pinned, data, 256, hipMemcpyDeviceToHost, copies);
    (void)hipDeviceSynchronize();
    (void)hipHostFree(pinned);
    return finish(data);
}
