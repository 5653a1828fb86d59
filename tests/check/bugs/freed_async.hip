// check: kind=use-after-free kernel=sum
#include "seed.h"

__global__ void sum(int *out, const int *in) {
    atomicAdd(out, in[threadIdx.x]); // BUG
}
int main() {
    int *out = device(std::vector<int>(1)), *in = nullptr;
    hipStream_t stream;
    (void)hipStreamCreate(&stream);
    (void)hipMallocAsync(reinterpret_cast<void **>(&in), 256, stream);
    (void)hipMemsetAsync(in, 1, 256, stream);
    (void)hipFreeAsync(in, stream);
    sum<<<1, 64, 0, stream>>>(out, in);
    (void)hipStreamSynchronize(stream);
    return end(out);
}
