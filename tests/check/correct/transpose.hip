// check: correct
#include "seed.h"

__global__ void transpose(float *out, const float *in, int n) {
    __shared__ float tile[16][17];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    x = blockIdx.y * 16 + threadIdx.x, y = blockIdx.x * 16 + threadIdx.y;
    out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}
int main() {
    std::vector<float> values(64 * 64);
    for (int i = 0; i < 64 * 64; ++i) values[i] = static_cast<float>(i);
    float *out = device<float>(64 * 64), *in = device(values);
    transpose<<<dim3(4, 4), dim3(16, 16)>>>(out, in, 64);
    return pass(host(out, 64 * 64)[5 * 64 + 9] == 9 * 64 + 5);
}
