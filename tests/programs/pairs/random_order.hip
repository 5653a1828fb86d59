// A random order of work: kernels, copies within and between the devices, on three streams of each, ordered by events where they share a value.
#include "../pair.h"

namespace {

constexpr int kValues = 6, kStreams = 3, kSteps = 120, kCount = 64;

__global__ void change(unsigned* value, unsigned factor, unsigned term) {
    const int at = pair::thread();
    if (at < kCount) value[at] = value[at] * factor + term + at;
}
__global__ void add(unsigned* value, const unsigned* other) {
    const int at = pair::thread();
    if (at < kCount) value[at] += other[at];
}

struct Value {
    unsigned* memory;
    std::vector<unsigned> want;
    int last; // the queue that has used it last
};

} // namespace

int main(int argc, char** argv) {
    pair::begin("random_order", argc, argv);
    check::Rng rng(8);
    pair::Queue queues[2 * kStreams] = {pair::Queue(0), pair::Queue(0), pair::Queue(0), pair::Queue(1), pair::Queue(1), pair::Queue(1)};
    Value values[2][kValues];
    for (int device : {0, 1})
        for (Value& value : values[device]) {
            value.want = rng.bits<unsigned>(kCount);
            value.memory = pair::allocate(device, value.want);
            value.last = device * kStreams;
        }
    // What a queue does with a value comes behind what was done with it before.
    const auto take = [&](Value& value, int queue) {
        if (value.last != queue) queues[queue].after(queues[value.last]);
        value.last = queue;
    };
    for (int step = 0; step < kSteps; step++) {
        if (step == kSteps / 2) pair::middle();
        const int queue = rng.below(2 * kStreams), device = queue / kStreams;
        Value& value = values[device][rng.below(kValues)];
        switch (rng.below(4)) {
        case 0:
        case 1: {
            const unsigned factor = rng.u32() | 1, term = rng.u32();
            take(value, queue);
            queues[queue].launch(change, kCount, value.memory, factor, term);
            for (int i = 0; i < kCount; i++) value.want[i] = value.want[i] * factor + term + i;
            break;
        }
        case 2: {
            Value& other = values[device][rng.below(kValues)];
            take(value, queue);
            take(other, queue);
            queues[queue].launch(add, kCount, value.memory, other.memory);
            for (int i = 0; i < kCount; i++) value.want[i] += other.want[i];
            break;
        }
        default: {
            Value& other = values[1 - device][rng.below(kValues)];
            const bool is_to = rng.below(2) == 0;
            Value &to = is_to ? other : value, &from = is_to ? value : other;
            take(to, queue);
            take(from, queue);
            queues[queue].copy(to.memory, is_to ? 1 - device : device, from.memory, is_to ? device : 1 - device, kCount);
            to.want = from.want;
        }
        }
    }
    for (pair::Queue& queue : queues) pair::wait(queue.stream);
    for (int device : {0, 1}) {
        pair::enter(device);
        for (Value& value : values[device]) {
            check::equal("value", pair::look(value.memory, kCount), value.want);
            HIP_CHECK(hipFree(value.memory));
        }
    }
    for (pair::Queue& queue : queues) queue.close();
    return pair::finish();
}
