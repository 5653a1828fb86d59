// A number goes from device to device and grows at each; null streams, blocking ones and those of the thread take turns.
#include "../pair.h"

namespace {

constexpr int kRounds = 16, kCount = 64;

__global__ void grow(int* values, int factor) {
    const int at = pair::thread();
    if (at < kCount) values[at] = values[at] * factor + at;
}

} // namespace

int main(int argc, char** argv) {
    pair::begin("ping_pong", argc, argv);
    std::vector<int> want(kCount);
    for (int i = 0; i < kCount; i++) want[i] = i % 3;
    int* values[2] = {pair::allocate(0, want), pair::allocate<int>(1, kCount)};
    hipStream_t streams[2][3];
    hipEvent_t events[2];
    for (int device : {0, 1}) {
        pair::enter(device);
        streams[device][0] = nullptr;
        HIP_CHECK(hipStreamCreate(&streams[device][1]));
        streams[device][2] = hipStreamPerThread;
        HIP_CHECK(hipEventCreate(&events[device]));
    }
    for (int round = 0; round < kRounds; round++) {
        if (round == kRounds / 2) pair::middle();
        const int here = round % 2, there = 1 - here;
        hipStream_t stream = streams[here][round % 3], next = streams[there][(round + 1) % 3];
        pair::enter(here);
        grow<<<1, kCount, 0, stream>>>(values[here], 3 + round);
        HIP_CHECK(hipGetLastError());
        if (round % 4 < 2) HIP_CHECK(hipMemcpyPeerAsync(values[there], there, values[here], here, kCount * sizeof(int), stream));
        else HIP_CHECK(hipMemcpyAsync(values[there], values[here], kCount * sizeof(int), hipMemcpyDefault, stream));
        HIP_CHECK(hipEventRecord(events[here], stream));
        pair::enter(there);
        HIP_CHECK(hipStreamWaitEvent(next, events[here], 0));
        pair::copies++;
        pair::orders++;
        for (int i = 0; i < kCount; i++) want[i] = static_cast<int>(static_cast<unsigned>(want[i]) * (3 + round) + i);
        if (round % 5 == 4) {
            pair::wait(next);
            check::equal("on the way", pair::look(values[there], kCount), want);
        }
    }
    pair::wait(streams[0][kRounds % 3]);
    pair::enter(0);
    check::equal("at the end", pair::look(values[0], kCount), want);
    for (int device : {0, 1}) {
        pair::enter(device);
        HIP_CHECK(hipStreamDestroy(streams[device][1]));
        HIP_CHECK(hipEventDestroy(events[device]));
        HIP_CHECK(hipFree(values[device]));
    }
    return pair::finish();
}
