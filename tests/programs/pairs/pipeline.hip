// A pipeline with a stage on each device and two buffers between them: a buffer is filled again when the second stage is through with it.
#include "../pair.h"

namespace {

constexpr int kBatches = 10, kCount = 1000;

__global__ void first(uint64_t* to, const uint32_t* from) {
    const int at = pair::thread();
    if (at < kCount) to[at] = static_cast<uint64_t>(from[at]) * from[at] + 7;
}
__global__ void second(uint64_t* to, const uint64_t* from) {
    const int at = pair::thread();
    if (at < kCount) to[at] = from[at] ^ (from[kCount - 1 - at] >> 3);
}

} // namespace

int main(int argc, char** argv) {
    pair::begin("pipeline", argc, argv);
    check::Rng rng(4);
    pair::Queue stages[2] = {pair::Queue(0), pair::Queue(1)};
    const auto input = rng.bits<uint32_t>(kBatches * kCount);
    uint32_t* in = pair::allocate(0, input);
    uint64_t* made = pair::allocate<uint64_t>(0, kCount);
    uint64_t* out = pair::allocate<uint64_t>(1, kBatches * kCount);
    uint64_t* buffers[2] = {pair::allocate<uint64_t>(1, kCount), pair::allocate<uint64_t>(1, kCount)};
    hipEvent_t used[2];
    for (hipEvent_t& event : used) {
        pair::enter(1);
        HIP_CHECK(hipEventCreateWithFlags(&event, hipEventDisableTiming));
    }
    for (int batch = 0; batch < kBatches; batch++) {
        if (batch == kBatches / 2) pair::middle();
        stages[0].launch(first, kCount, made, in + batch * kCount);
        // An event that was not recorded yet holds nobody up.
        HIP_CHECK(hipStreamWaitEvent(stages[0].stream, used[batch % 2], 0));
        pair::orders++;
        stages[0].copy(buffers[batch % 2], 1, made, 0, kCount);
        stages[1].after(stages[0]);
        stages[1].launch(second, kCount, out + batch * kCount, buffers[batch % 2]);
        HIP_CHECK(hipEventRecord(used[batch % 2], stages[1].stream));
    }
    std::vector<uint64_t> want(kBatches * kCount), between(kCount);
    for (int batch = 0; batch < kBatches; batch++) {
        for (int i = 0; i < kCount; i++) {
            const uint64_t value = input[batch * kCount + i];
            between[i] = value * value + 7;
        }
        for (int i = 0; i < kCount; i++) want[batch * kCount + i] = between[i] ^ (between[kCount - 1 - i] >> 3);
    }
    pair::wait(stages[1].stream);
    pair::enter(1);
    check::equal("out", pair::look(out, kBatches * kCount), want);
    for (hipEvent_t event : used) HIP_CHECK(hipEventDestroy(event));
    for (void* memory : {static_cast<void*>(in), static_cast<void*>(made), static_cast<void*>(out), static_cast<void*>(buffers[0]), static_cast<void*>(buffers[1])})
        HIP_CHECK(hipFree(memory));
    for (pair::Queue& stage : stages) stage.close();
    return pair::finish();
}
