// check: correct
#include "program.h"

__global__ void use(const int* data, int* out) {
    out[threadIdx.x] = data[threadIdx.x] + 1;
}

int main() {
    int *data = zeros<int>(64), *out = raw<int>(64), *pinned = nullptr;
    if (hipHostMalloc(reinterpret_cast<void**>(&pinned), 256) != hipSuccess) return 2;
    for (int i = 0; i < 64; i++) pinned[i] = i;
    (void)hipDeviceSynchronize();
    hipStream_t copies, kernels;
    if (hipStreamCreate(&copies) != hipSuccess || hipStreamCreate(&kernels) != hipSuccess) return 2;
    (void)hipMemcpyAsync(data, pinned, 256, hipMemcpyHostToDevice, copies);
    use<<<1, 64, 0, copies>>>(data, out);
    (void)hipDeviceSynchronize();
    (void)hipHostFree(pinned);
    return finish(data, out);
}
