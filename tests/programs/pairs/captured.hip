// Work of both devices captured into one graph, forked and joined by events, and launched several times.
#include "../pair.h"

namespace {

constexpr int kCount = 300, kLaunches = 4;

__global__ void add(int* values, int term) {
    const int at = pair::thread();
    if (at < kCount) values[at] += term;
}
__global__ void combine(int* out, const int* left, const int* right) {
    const int at = pair::thread();
    if (at < kCount) out[at] = 3 * left[at] - right[at];
}

} // namespace

int main(int argc, char** argv) {
    pair::begin("captured", argc, argv);
    std::vector<int> left(kCount), right(kCount), want(kCount);
    for (int i = 0; i < kCount; i++) left[i] = i, right[i] = 1000 - i;
    pair::Queue queues[2] = {pair::Queue(0), pair::Queue(1)};
    int* values[2] = {pair::allocate(0, left), pair::allocate(1, right)};
    int* brought = pair::allocate<int>(0, kCount);
    int* out = pair::allocate<int>(0, kCount);
    hipGraph_t graph;
    hipGraphExec_t instance;
    pair::enter(0);
    HIP_CHECK(hipStreamBeginCapture(queues[0].stream, hipStreamCaptureModeRelaxed));
    queues[1].after(queues[0]);
    queues[1].launch(add, kCount, values[1], 5);
    queues[0].launch(add, kCount, values[0], 2);
    queues[0].after(queues[1]);
    HIP_CHECK(hipMemcpyAsync(brought, values[1], kCount * sizeof(int), hipMemcpyDeviceToDevice, queues[0].stream));
    queues[0].launch(combine, kCount, out, values[0], brought);
    HIP_CHECK(hipStreamEndCapture(queues[0].stream, &graph));
    HIP_CHECK(hipGraphInstantiate(&instance, graph, nullptr, nullptr, 0));
    for (int launch = 0; launch < kLaunches; launch++) {
        if (launch == 2) pair::middle();
        pair::enter(0);
        HIP_CHECK(hipGraphLaunch(instance, queues[0].stream));
        pair::orders += 2;
        pair::copies++;
        for (int i = 0; i < kCount; i++) {
            left[i] += 2;
            right[i] += 5;
            want[i] = 3 * left[i] - right[i];
        }
        if (launch % 2 == 1) {
            pair::wait(queues[0].stream);
            check::equal("out", pair::look(out, kCount), want);
        }
    }
    pair::enter(1);
    check::equal("right", pair::look(values[1], kCount), right);
    HIP_CHECK(hipGraphExecDestroy(instance));
    HIP_CHECK(hipGraphDestroy(graph));
    for (int* memory : {values[0], values[1], brought, out}) HIP_CHECK(hipFree(memory));
    for (pair::Queue& queue : queues) queue.close();
    return pair::finish();
}
