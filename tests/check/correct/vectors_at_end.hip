// check: correct
#include "seed.h"

__global__ void copy(float4 *to, const float4 *from) {
    to[threadIdx.x] = from[threadIdx.x];
}
int main() {
    float *to = device<float>(400), *from = device(std::vector<float>(400, 2.5f));
    copy<<<1, 100>>>(reinterpret_cast<float4 *>(to), reinterpret_cast<const float4 *>(from));
    return pass(host(to, 400)[399] == 2.5f);
}
