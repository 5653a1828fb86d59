// Pinned memory that kernels of both devices write, each its half; a function of the host, behind both, adds the halves up.
#include "../pair.h"

namespace {

constexpr int kHalf = 3000;

__global__ void squares(int* out, int base) {
    const int at = pair::thread();
    if (at < kHalf) out[at] = (base + at) % 1000;
}

struct Sum {
    const int* values;
    long result;
};

void add_up(void* argument) {
    Sum* sum = static_cast<Sum*>(argument);
    for (int i = 0; i < 2 * kHalf; i++) sum->result += sum->values[i];
}

} // namespace

int main(int argc, char** argv) {
    pair::begin("pinned_halves", argc, argv);
    pair::Queue queues[2] = {pair::Queue(0), pair::Queue(1)};
    int* values = nullptr;
    HIP_CHECK(hipHostMalloc(&values, 2 * kHalf * sizeof(int), hipHostMallocPortable | hipHostMallocMapped));
    long want = 0;
    Sum sum = {values, 0};
    for (int round = 0; round < 4; round++) {
        for (int device : {0, 1}) {
            int* half = nullptr;
            pair::enter(device);
            HIP_CHECK(hipHostGetDevicePointer(reinterpret_cast<void**>(&half), values, 0));
            queues[device].launch(squares, kHalf, half + device * kHalf, round * 1717 + device * 31);
        }
        queues[0].after(queues[1]);
        if (round == 2) pair::middle();
        pair::enter(0);
        HIP_CHECK(hipLaunchHostFunc(queues[0].stream, add_up, &sum));
        queues[1].after(queues[0]);
        for (int device : {0, 1})
            for (int i = 0; i < kHalf; i++) want += (round * 1717 + device * 31 + i) % 1000;
    }
    pair::wait(queues[1].stream);
    pair::wait(queues[0].stream);
    EXPECT(sum.result == want);
    for (int device : {0, 1})
        for (int i = 0; i < kHalf; i += 13) EXPECT(values[device * kHalf + i] == (3 * 1717 + device * 31 + i) % 1000);
    HIP_CHECK(hipHostFree(values));
    for (pair::Queue& queue : queues) queue.close();
    return pair::finish();
}
