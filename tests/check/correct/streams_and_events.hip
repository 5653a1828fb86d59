// check: correct
#include "seed.h"

__global__ void add(int *values, int more) {
    values[threadIdx.x] += more;
}
int main() {
    hipStream_t one, two;
    hipEvent_t event;
    (void)hipStreamCreateWithFlags(&one, hipStreamNonBlocking);
    (void)hipStreamCreateWithFlags(&two, hipStreamNonBlocking);
    (void)hipEventCreate(&event);
    int *values = device(numbers(64)), *copy = device<int>(64);
    add<<<1, 64, 0, one>>>(values, 1);
    (void)hipEventRecord(event, one);
    (void)hipStreamWaitEvent(two, event, 0);
    add<<<1, 64, 0, two>>>(values, 2);
    (void)hipMemcpyAsync(copy, values, 256, hipMemcpyDeviceToDevice, two);
    (void)hipStreamSynchronize(two);
    add<<<1, 64, 0, one>>>(values, 3);
    (void)hipStreamSynchronize(one);
    return pass(host(copy, 64)[0] == 3 && host(values, 64)[0] == 6);
}
