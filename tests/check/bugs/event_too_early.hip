// check: kind=stream-race kernel=after
#include "seed.h"

__global__ void before(int *data) {
    data[threadIdx.x] = threadIdx.x; // BUG
}
__global__ void after(int *out, const int *data) {
    out[threadIdx.x] = data[threadIdx.x]; // BUG
}
int main() {
    hipStream_t one, two;
    hipEvent_t event;
    (void)hipStreamCreateWithFlags(&one, hipStreamNonBlocking);
    (void)hipStreamCreateWithFlags(&two, hipStreamNonBlocking);
    (void)hipEventCreate(&event);
    int *out = device<int>(64), *data = device(std::vector<int>(64));
    (void)hipEventRecord(event, one);
    before<<<1, 64, 0, one>>>(data);
    (void)hipStreamWaitEvent(two, event, 0);
    after<<<1, 64, 0, two>>>(out, data);
    return end(out);
}
