// check: correct
#include "seed.h"

__global__ void multiply(float *c, const float *a, const float *b, int n) {
    __shared__ float at[16][16], bt[16][16];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        at[threadIdx.y][threadIdx.x] = a[y * n + k + threadIdx.x];
        bt[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + x];
        __syncthreads();
        for (int i = 0; i < 16; ++i) sum += at[threadIdx.y][i] * bt[i][threadIdx.x];
        __syncthreads();
    }
    c[y * n + x] = sum;
}
int main() {
    float *c = device<float>(64 * 64), *a = device(std::vector<float>(64 * 64, 1)), *b = device(std::vector<float>(64 * 64, 2));
    multiply<<<dim3(4, 4), dim3(16, 16)>>>(c, a, b, 64);
    return pass(host(c, 64 * 64)[4095] == 128);
}
