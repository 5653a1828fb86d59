// check: kind=stream-race kernel=add_one
#include "program.h"

__global__ void write_all(int* data) { data[threadIdx.x] = threadIdx.x; }

__global__ void add_one(const int* data, int* out) {
    out[threadIdx.x] = data[threadIdx.x] + 1; // BUG
}

int main() {
    int *data = raw<int>(64), *out = raw<int>(64);
    (void)hipMemset(data, 0, 256);
    (void)hipDeviceSynchronize();
    hipStream_t first, second;
    hipEvent_t written;
    if (hipStreamCreate(&first) != hipSuccess || hipStreamCreate(&second) != hipSuccess) return 2;
    if (hipEventCreate(&written) != hipSuccess) return 2;
    write_all<<<1, 64, 0, first>>>(data);
    (void)hipEventRecord(written, first);
    add_one<<<1, 64, 0, second>>>(data, out);
    return finish(data, out);
}
