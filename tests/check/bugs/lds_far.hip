// check: kind=out-of-bounds kernel=table
#include "seed.h"

__global__ void table(int *out, const int *index) {
    __shared__ int values[64];
    values[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = values[index[threadIdx.x]]; // BUG
}
int main() {
    std::vector<int> far = numbers(64);
    far[13] = 20000;
    int *out = device<int>(64), *index = device(far);
    table<<<1, 64>>>(out, index);
    return end(out);
}
