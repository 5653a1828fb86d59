// check: kind=use-after-free kernel=use_kept
#include "program.h"

__device__ int* kept;

__global__ void keep(int* data) { kept = data; }

__global__ void use_kept() {
    kept[threadIdx.x] = 3; // BUG
}

int main() {
    int* data = raw<int>(64);
    keep<<<1, 1>>>(data);
    (void)hipDeviceSynchronize();
    (void)hipFree(data);
    use_kept<<<1, 64>>>();
    (void)hipDeviceSynchronize();
    return 0;
}
