// check: correct
#include "program.h"

__global__ void write_all(int* data) { data[threadIdx.x] = threadIdx.x; }
__global__ void add_one(int* data) { data[threadIdx.x] += 1; }

int main() {
    int* data = raw<int>(64);
    hipStream_t first, second;
    hipEvent_t there, back;
    if (hipStreamCreate(&first) != hipSuccess || hipStreamCreate(&second) != hipSuccess) return 2;
    if (hipEventCreate(&there) != hipSuccess || hipEventCreate(&back) != hipSuccess) return 2;
    for (int i = 0; i < 3; i++) {
        write_all<<<1, 64, 0, first>>>(data);
        (void)hipEventRecord(there, first);
        (void)hipStreamWaitEvent(second, there, 0);
        add_one<<<1, 64, 0, second>>>(data);
        (void)hipEventRecord(back, second);
        (void)hipStreamWaitEvent(first, back, 0);
    }
    return finish(data);
}
