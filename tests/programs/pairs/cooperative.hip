// One cooperative launch on both devices: within each grid all groups wait for each other, and where both devices support it, both grids do.
#include "../pair.h"

#include <hip/hip_cooperative_groups.h>

namespace {

constexpr int kGroups = 4, kThreads = 64, kCount = kGroups * kThreads;

// Each thread adds up what all threads of its grid have stored.
__global__ void sum_grid(int* values, int* out, int base) {
    const auto grid = cooperative_groups::this_grid();
    const int at = pair::thread();
    values[at] = base + at;
    grid.sync();
    int sum = 0;
    for (int i = 0; i < kCount; i++) sum += values[i];
    out[at] = sum;
}

} // namespace

int main(int argc, char** argv) {
    pair::begin("cooperative", argc, argv);
    pair::Queue queues[2] = {pair::Queue(0), pair::Queue(1)};
    int *values[2], *out[2];
    for (int device : {0, 1}) {
        values[device] = pair::allocate<int>(device, kCount);
        out[device] = pair::allocate<int>(device, kCount);
    }
    for (int round = 0; round < 3; round++) {
        hipLaunchParams launches[2];
        void* arguments[2][3];
        int base[2] = {round, round * 100 + 7};
        for (int device : {0, 1}) {
            arguments[device][0] = &values[device];
            arguments[device][1] = &out[device];
            arguments[device][2] = &base[device];
            launches[device] = {reinterpret_cast<void*>(sum_grid), dim3(kGroups), dim3(kThreads), arguments[device], 0, queues[device].stream};
        }
        HIP_CHECK(hipLaunchCooperativeKernelMultiDevice(launches, 2, round == 1 ? hipCooperativeLaunchMultiDeviceNoPreSync : 0));
        if (round == 1) pair::middle();
        // Both results on one device.
        queues[0].after(queues[1]);
        queues[0].copy(values[0], 0, out[1], 1, kCount);
        pair::wait(queues[0].stream);
        pair::enter(0);
        const auto own = pair::look(out[0], kCount), other = pair::look(values[0], kCount);
        const int sum = kCount * (kCount - 1) / 2;
        check::equal("own", own, std::vector<int>(kCount, sum + base[0] * kCount));
        check::equal("other", other, std::vector<int>(kCount, sum + base[1] * kCount));
    }
    for (int device : {0, 1}) {
        pair::enter(device);
        HIP_CHECK(hipFree(values[device]));
        HIP_CHECK(hipFree(out[device]));
        queues[device].close();
    }
    return pair::finish();
}
