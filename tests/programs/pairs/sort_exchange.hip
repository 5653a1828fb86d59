// Sorts numbers of which each device has half: both sort theirs, exchange them, and keep the lower or the upper half of all.
#include "../pair.h"

namespace {

constexpr int kHalf = 512;

// Sorts by one group, in shared memory.
__global__ void sort(uint32_t* values) {
    __shared__ uint32_t shared[kHalf];
    for (int at = threadIdx.x; at < kHalf; at += blockDim.x) shared[at] = values[at];
    for (int size = 2; size <= kHalf; size *= 2)
        for (int distance = size / 2; distance > 0; distance /= 2) {
            __syncthreads();
            for (int at = threadIdx.x; at < kHalf; at += blockDim.x) {
                const int other = at ^ distance;
                if (other <= at) continue;
                const bool is_up = (at & size) == 0;
                if ((shared[at] > shared[other]) == is_up) {
                    const uint32_t value = shared[at];
                    shared[at] = shared[other];
                    shared[other] = value;
                }
            }
        }
    __syncthreads();
    for (int at = threadIdx.x; at < kHalf; at += blockDim.x) values[at] = shared[at];
}

// Of two sorted halves keeps the lower or the upper values; sorted after another `sort`.
__global__ void keep(uint32_t* own, const uint32_t* other, int is_upper) {
    const int at = pair::thread();
    if (at >= kHalf) return;
    const uint32_t mine = own[at], theirs = other[kHalf - 1 - at];
    own[at] = is_upper ? (mine > theirs ? mine : theirs) : (mine < theirs ? mine : theirs);
}

} // namespace

int main(int argc, char** argv) {
    pair::begin("sort_exchange", argc, argv);
    check::Rng rng(5);
    auto all = rng.bits<uint32_t>(2 * kHalf);
    pair::Queue queues[2] = {pair::Queue(0), pair::Queue(1)};
    uint32_t *own[2], *other[2];
    for (int device : {0, 1}) {
        own[device] = pair::allocate(device, std::vector<uint32_t>(all.begin() + device * kHalf, all.begin() + (device + 1) * kHalf));
        other[device] = pair::allocate<uint32_t>(device, kHalf);
        queues[device].launch(sort, 128, own[device]);
    }
    for (int device : {0, 1}) {
        queues[device].after(queues[1 - device]);
        queues[device].copy(other[device], device, own[1 - device], 1 - device, kHalf);
    }
    pair::middle();
    // Nobody changes what the other one still reads.
    for (int device : {0, 1}) queues[device].after(queues[1 - device]);
    for (int device : {0, 1}) {
        queues[device].launch(keep, kHalf, own[device], other[device], device);
        queues[device].launch(sort, 128, own[device]);
    }
    std::sort(all.begin(), all.end());
    for (int device : {0, 1}) {
        pair::wait(queues[device].stream);
        pair::enter(device);
        check::equal("sorted", pair::look(own[device], kHalf), std::vector<uint32_t>(all.begin() + device * kHalf, all.begin() + (device + 1) * kHalf));
        HIP_CHECK(hipFree(own[device]));
        HIP_CHECK(hipFree(other[device]));
        queues[device].close();
    }
    return pair::finish();
}
