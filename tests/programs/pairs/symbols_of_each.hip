// Variables of the program exist once on each device: tables in constant memory and counters, set and read by name, and a window between both.
#include "../pair.h"

namespace {

constexpr int kCount = 256;

__constant__ int table[kCount];
__device__ unsigned counter;
__device__ int window[kCount];

__global__ void look_up(int* out, const int* in) {
    const int at = pair::thread();
    if (at >= kCount) return;
    out[at] = table[in[at] & (kCount - 1)];
    window[at] = out[at] + 1;
    atomicAdd(&counter, 1u);
}

} // namespace

int main(int argc, char** argv) {
    pair::begin("symbols_of_each", argc, argv);
    check::Rng rng(7);
    const auto in = rng.bits<int>(kCount);
    const std::vector<int> tables[2] = {rng.bits<int>(kCount), rng.bits<int>(kCount)};
    std::vector<int> want[2];
    int *from[2], *to[2];
    void* windows[2];
    for (int device : {0, 1}) {
        from[device] = pair::allocate(device, in);
        to[device] = pair::allocate<int>(device, kCount);
        HIP_CHECK(hipMemcpyToSymbol(HIP_SYMBOL(table), tables[device].data(), kCount * sizeof(int)));
        const unsigned zero = device * 10;
        HIP_CHECK(hipMemcpyToSymbol(HIP_SYMBOL(counter), &zero, sizeof zero));
        HIP_CHECK(hipGetSymbolAddress(&windows[device], HIP_SYMBOL(window)));
        for (int value : in) want[device].push_back(tables[device][value & (kCount - 1)]);
    }
    for (int device : {0, 1}) {
        pair::enter(device);
        look_up<<<2, 128>>>(to[device], from[device]);
        HIP_CHECK(hipGetLastError());
    }
    pair::middle();
    for (int device : {0, 1}) {
        pair::enter(device);
        unsigned counted = 0;
        HIP_CHECK(hipMemcpyFromSymbol(&counted, HIP_SYMBOL(counter), sizeof counted));
        pair::looks++;
        EXPECT(counted == kCount + device * 10u);
        check::equal("looked up", pair::look(to[device], kCount), want[device]);
    }
    // The window of one device becomes what the other one looks up.
    HIP_CHECK(hipMemcpy(from[0], windows[1], kCount * sizeof(int), hipMemcpyDefault));
    pair::copies++;
    pair::looks++;
    pair::enter(0);
    look_up<<<2, 128>>>(to[0], from[0]);
    HIP_CHECK(hipGetLastError());
    for (int i = 0; i < kCount; i++) want[0][i] = tables[0][(want[1][i] + 1) & (kCount - 1)];
    check::equal("by the window", pair::look(to[0], kCount), want[0]);
    for (int device : {0, 1}) {
        pair::enter(device);
        HIP_CHECK(hipFree(from[device]));
        HIP_CHECK(hipFree(to[device]));
    }
    return pair::finish();
}
