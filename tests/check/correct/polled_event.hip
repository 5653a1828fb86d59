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
    int *values = device(numbers(64));
    add<<<1, 64, 0, one>>>(values, 1);
    (void)hipEventRecord(event, one);
    while (hipEventQuery(event) == hipErrorNotReady) {
    }
    add<<<1, 64, 0, two>>>(values, 2);
    while (hipStreamQuery(two) == hipErrorNotReady) {
    }
    add<<<1, 64, 0, one>>>(values, 3);
    (void)hipEventRecord(event, one);
    (void)hipEventSynchronize(event);
    return pass(host(values, 64)[0] == 6);
}
