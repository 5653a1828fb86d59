// check: correct
#include "seed.h"

__global__ void smooth(float *out, const float *in, int n) {
    __shared__ float tile[130];
    int i = blockIdx.x * 128 + threadIdx.x;
    tile[threadIdx.x + 1] = i < n ? in[i] : 0;
    if (threadIdx.x == 0) tile[0] = i > 0 ? in[i - 1] : 0;
    if (threadIdx.x == 127) tile[129] = i + 1 < n ? in[i + 1] : 0;
    __syncthreads();
    if (i < n) out[i] = tile[threadIdx.x] + tile[threadIdx.x + 1] + tile[threadIdx.x + 2];
}
int main() {
    float *out = device<float>(1000), *in = device(std::vector<float>(1000, 1));
    smooth<<<8, 128>>>(out, in, 1000);
    return pass(host(out, 1000)[500] == 3 && host(out, 1000)[999] == 2);
}
