// check: kind=stream-race kernel=read_all
#include "program.h"

__global__ void write_all(int* data) { data[threadIdx.x] = threadIdx.x; }

__global__ void read_all(const int* data, int* out) {
    out[threadIdx.x] = data[threadIdx.x]; // BUG
}

int main() {
    int *data = zeros<int>(64), *out = raw<int>(64);
    (void)hipDeviceSynchronize();
    hipStream_t other;
    if (hipStreamCreateWithFlags(&other, hipStreamNonBlocking) != hipSuccess) return 2;
    write_all<<<1, 64>>>(data);
    read_all<<<1, 64, 0, other>>>(data, out);
    return finish(data, out);
}
