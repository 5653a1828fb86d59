// Memory of each device's pool, in the order of streams: made, filled, given to the other device, freed behind the copy, and made again.
#include "../pair.h"

namespace {

constexpr int kRounds = 8, kCount = 2000;

__global__ void fill(int* out, int base) {
    const int at = pair::thread();
    if (at < kCount) out[at] = base ^ at;
}
__global__ void accumulate(int* out, const int* in) {
    const int at = pair::thread();
    if (at < kCount) out[at] += in[at];
}

} // namespace

int main(int argc, char** argv) {
    pair::begin("pools_of_each", argc, argv);
    pair::Queue queues[2] = {pair::Queue(0), pair::Queue(1)};
    int* sums[2];
    std::vector<int> want[2] = {std::vector<int>(kCount), std::vector<int>(kCount)};
    for (int device : {0, 1}) {
        sums[device] = pair::allocate(device, want[device]);
        hipMemPool_t pool;
        uint64_t keep = 1 << 20;
        HIP_CHECK(hipDeviceGetDefaultMemPool(&pool, device));
        HIP_CHECK(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &keep));
    }
    for (int round = 0; round < kRounds; round++) {
        if (round == kRounds / 2) pair::middle();
        const int maker = round % 2, taker = 1 - maker;
        int *made = nullptr, *taken = nullptr;
        pair::enter(maker);
        HIP_CHECK(hipMallocAsync(reinterpret_cast<void**>(&made), kCount * sizeof(int), queues[maker].stream));
        queues[maker].launch(fill, kCount, made, round * 77);
        pair::enter(taker);
        HIP_CHECK(hipMallocAsync(reinterpret_cast<void**>(&taken), kCount * sizeof(int), queues[taker].stream));
        queues[taker].after(queues[maker]);
        queues[taker].copy(taken, taker, made, maker, kCount);
        queues[maker].after(queues[taker]);
        pair::enter(maker);
        HIP_CHECK(hipFreeAsync(made, queues[maker].stream));
        queues[taker].launch(accumulate, kCount, sums[taker], taken);
        HIP_CHECK(hipFreeAsync(taken, queues[taker].stream));
        for (int i = 0; i < kCount; i++) want[taker][i] += (round * 77) ^ i;
    }
    for (int device : {0, 1}) {
        pair::wait(queues[device].stream);
        pair::enter(device);
        check::equal("sums", pair::look(sums[device], kCount), want[device]);
        HIP_CHECK(hipFree(sums[device]));
        queues[device].close();
    }
    return pair::finish();
}
