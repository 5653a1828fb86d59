// check: correct
#include "program.h"

__global__ void accumulate(int* data) {
    data[threadIdx.x] += 1;
}

int main() {
    int* data = zeros<int>(64);
    (void)hipDeviceSynchronize();
    hipStream_t first, second;
    if (hipStreamCreateWithFlags(&first, hipStreamNonBlocking) != hipSuccess) return 2;
    if (hipStreamCreateWithFlags(&second, hipStreamNonBlocking) != hipSuccess) return 2;
    (void)hipMemsetAsync(data, 0, 256, first);
    accumulate<<<1, 64, 0, first>>>(data);
    return finish(data);
}
