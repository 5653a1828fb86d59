// check: kind=stream-race kernel=reader
#include "seed.h"

__global__ void writer(int *data) {
    data[threadIdx.x] = threadIdx.x; // BUG
}
__global__ void reader(int *out, const int *data) {
    out[threadIdx.x] = data[threadIdx.x]; // BUG
}
int main() {
    hipStream_t one, two;
    (void)hipStreamCreateWithFlags(&one, hipStreamNonBlocking);
    (void)hipStreamCreateWithFlags(&two, hipStreamNonBlocking);
    int *out = device<int>(64), *data = device(std::vector<int>(64));
    writer<<<1, 64, 0, one>>>(data);
    reader<<<1, 64, 0, two>>>(out, data);
    return end(out);
}
