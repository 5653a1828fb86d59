// check: correct
#include "seed.h"

// The last thread loads a word of LDS that nobody wrote, compares it, and uses the result of no comparison.
__global__ void ends_of_runs(int *out, const int *in, int *runs) {
    __shared__ int tile[65];
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    bool is_last = threadIdx.x == 63;
    bool differs = tile[threadIdx.x] != tile[threadIdx.x + 1];
    bool ends = is_last || differs;
    out[threadIdx.x] = ends;
    if (ends) atomicAdd(&count, 1);
    __syncthreads();
    if (is_last) *runs = count;
}
__global__ void neighbours(int *out, const int *values) {
    int below = __shfl_up(values[threadIdx.x], 1), above = __shfl_down(values[threadIdx.x], 1);
    out[threadIdx.x] = threadIdx.x >= 2 && threadIdx.x < 39 ? above - below : 0;
}
int main() {
    std::vector<int> in(64);
    for (int i = 0; i < 64; i++) in[i] = i / 5;
    int *out = device<int>(64), *runs = device<int>(1), *values = device<int>(64);
    ends_of_runs<<<1, 64>>>(out, device(in), runs);
    bool is_right = host(out, 64)[4] == 1 && host(out, 64)[5] == 0 && host(out, 64)[63] == 1 && host(runs, 1)[0] == 13;
    (void)hipMemcpy(values, numbers(40).data(), 40 * sizeof(int), hipMemcpyHostToDevice);
    neighbours<<<1, 64>>>(out, values);
    return pass(is_right && host(out, 64)[38] == 2 && host(out, 64)[39] == 0);
}
