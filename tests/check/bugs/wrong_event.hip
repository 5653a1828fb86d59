// check: kind=stream-race kernel=last
#include "seed.h"

__global__ void increment(int *data) {
    data[threadIdx.x] += 1; // BUG
}
__global__ void last(int *data) {
    data[threadIdx.x] *= 2; // BUG
}
int main() {
    hipStream_t streams[3];
    hipEvent_t events[2];
    for (auto &stream : streams) (void)hipStreamCreate(&stream);
    for (auto &event : events) (void)hipEventCreate(&event);
    int *data = device(numbers(64)), *other = device(numbers(64));
    increment<<<1, 64, 0, streams[0]>>>(data);
    (void)hipEventRecord(events[0], streams[0]);
    increment<<<1, 64, 0, streams[1]>>>(other);
    (void)hipEventRecord(events[1], streams[1]);
    (void)hipStreamWaitEvent(streams[2], events[1], 0);
    last<<<1, 64, 0, streams[2]>>>(data);
    return end(data);
}
