// check: correct
#include "program.h"

__global__ void rows(char* data, size_t pitch, int width) {
    if (static_cast<int>(threadIdx.x) < width) reinterpret_cast<float*>(data + blockIdx.x * pitch)[threadIdx.x] += 1;
}

int main() {
    void* data = nullptr;
    size_t pitch = 0;
    std::vector<float> host(30 * 8);
    if (hipMallocPitch(&data, &pitch, 120, 8) != hipSuccess) return 2;
    if (hipMemcpy2D(data, pitch, host.data(), 120, 120, 8, hipMemcpyHostToDevice) != hipSuccess) return 2;
    rows<<<8, 64>>>(static_cast<char*>(data), pitch, 30);
    if (hipMemcpy2D(host.data(), 120, data, pitch, 120, 8, hipMemcpyDeviceToHost) != hipSuccess) return 2;
    return finish(data) + (host[0] != 1);
}
