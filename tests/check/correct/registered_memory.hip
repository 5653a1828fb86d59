// check: correct
#include "program.h"

__global__ void add_one(int* data) { data[blockIdx.x * blockDim.x + threadIdx.x] += 1; }

int main() {
    std::vector<int> host(4096, 1);
    void* device = nullptr;
    if (hipHostRegister(host.data(), 16384, hipHostRegisterDefault) != hipSuccess) return 2;
    if (hipHostGetDevicePointer(&device, host.data(), 0) != hipSuccess) return 2;
    add_one<<<64, 64>>>(static_cast<int*>(device));
    if (hipDeviceSynchronize() != hipSuccess) return 2;
    return hipHostUnregister(host.data()) == hipSuccess ? host[64] - 2 : 2;
}
