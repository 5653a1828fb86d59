// Reads the other device's memory in a kernel where the devices say that they can, and copies it first where they cannot.
#include "../pair.h"

namespace {

constexpr int kCount = 900;

__global__ void fill(int* out, int base) {
    const int at = pair::thread();
    if (at < kCount) out[at] = base * at;
}
__global__ void subtract(int* out, const int* from, int count) {
    const int at = pair::thread();
    if (at < count) out[at] = from[at] - out[at];
}

} // namespace

int main(int argc, char** argv) {
    pair::begin("peers", argc, argv);
    pair::Queue queues[2] = {pair::Queue(0), pair::Queue(1)};
    int *values[2], *near[2];
    for (int device : {0, 1}) {
        values[device] = pair::allocate<int>(device, kCount);
        near[device] = pair::allocate<int>(device, kCount);
        queues[device].launch(fill, kCount, values[device], 2 + device);
    }
    int can[2] = {0, 0};
    for (int device : {0, 1}) HIP_CHECK(hipDeviceCanAccessPeer(&can[device], device, 1 - device));
    EXPECT(can[0] == can[1]);
    for (int device : {0, 1}) {
        const int other = 1 - device;
        pair::enter(device);
        if (can[device]) HIP_CHECK(hipDeviceEnablePeerAccess(other, 0));
        else {
            const hipError_t error = hipDeviceEnablePeerAccess(other, 0);
            if (!pair::is_past_middle) EXPECT(error == hipErrorPeerAccessUnsupported);
            (void)hipGetLastError();
        }
        queues[device].after(queues[other]);
        if (!can[device]) queues[device].copy(near[device], device, values[other], other, kCount);
        if (device == 0) pair::middle();
        queues[device].launch(subtract, kCount, values[device], can[device] ? values[other] : near[device], kCount);
        // values[1] is read before it is changed.
        queues[other].after(queues[device]);
    }
    std::vector<int> want[2];
    for (int i = 0; i < kCount; i++) {
        want[0].push_back(3 * i - 2 * i);
        want[1].push_back(want[0][i] - 3 * i);
    }
    for (int device : {0, 1}) {
        pair::wait(queues[device].stream);
        pair::enter(device);
        check::equal("values", pair::look(values[device], kCount), want[device]);
        HIP_CHECK(hipFree(values[device]));
        HIP_CHECK(hipFree(near[device]));
        if (can[device]) HIP_CHECK(hipDeviceDisablePeerAccess(1 - device));
        queues[device].close();
    }
    return pair::finish();
}
