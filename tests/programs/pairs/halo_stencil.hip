// Heat in a rod, half of it on each device: in each step both exchange the values at the border, each with a copy on a stream of its own.
#include "../pair.h"

namespace {

constexpr int kHalf = 500, kSteps = 12;

// Value 0 and kHalf + 1 are the border's.
__global__ void step(float* to, const float* from) {
    const int at = pair::thread() + 1;
    if (at <= kHalf) to[at] = 0.25f * from[at - 1] + 0.5f * from[at] + 0.25f * from[at + 1];
}

} // namespace

int main(int argc, char** argv) {
    pair::begin("halo_stencil", argc, argv);
    check::Rng rng(2);
    const auto rod = rng.reals<float>(2 * kHalf + 2, 0, 100);
    std::vector<float> want = rod, next = rod;
    for (int round = 0; round < kSteps; round++) {
        for (int i = 1; i <= 2 * kHalf; i++) next[i] = std::fma(0.25f, want[i + 1], std::fma(0.25f, want[i - 1], 0.5f * want[i]));
        std::swap(want, next);
    }
    pair::Queue work[2] = {pair::Queue(0), pair::Queue(1)}, border[2] = {pair::Queue(0), pair::Queue(1)};
    float* halves[2][2];
    for (int device : {0, 1})
        for (float*& half : halves[device])
            half = pair::allocate(device, std::vector<float>(rod.begin() + device * kHalf, rod.begin() + device * kHalf + kHalf + 2));
    for (int round = 0; round < kSteps; round++) {
        if (round == kSteps / 2) pair::middle();
        const int from = round % 2, to = 1 - from;
        for (int device : {0, 1}) work[device].launch(step, kHalf, halves[device][to], halves[device][from]);
        for (int device : {0, 1}) {
            border[device].after(work[0]);
            border[device].after(work[1]);
        }
        border[0].copy(halves[0][to] + kHalf + 1, 0, halves[1][to] + 1, 1, 1);
        border[1].copy(halves[1][to], 1, halves[0][to] + kHalf, 0, 1);
        for (int device : {0, 1}) {
            work[device].after(border[0]);
            work[device].after(border[1]);
        }
    }
    for (int device : {0, 1}) {
        pair::wait(work[device].stream);
        pair::enter(device);
        const auto got = pair::look(halves[device][kSteps % 2] + 1, kHalf);
        check::near("half", got, std::vector<float>(want.begin() + 1 + device * kHalf, want.begin() + 1 + device * kHalf + kHalf), 1e-5);
        for (float* half : halves[device]) HIP_CHECK(hipFree(half));
        work[device].close();
        border[device].close();
    }
    return pair::finish();
}
