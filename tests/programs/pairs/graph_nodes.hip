// Every kind of node for either device in one graph, launched again and again on streams of both devices, also after a change.
#include "../pair.h"

namespace {

constexpr int kCount = 200, kLaunches = 3;
constexpr size_t kBytes = kCount * sizeof(int);

__global__ void scale(int* values, int factor) {
    const int at = pair::thread();
    if (at < kCount) values[at] *= factor;
}
__global__ void add(int* values, const int* other) {
    const int at = pair::thread();
    if (at < kCount) values[at] += other[at];
}

struct Graph {
    hipGraph_t graph;
    hipGraphNode_t last = nullptr;

    Graph() { HIP_CHECK(hipGraphCreate(&graph, 0)); }
    // The next node comes behind the last one.
    template <class Add, class... A> hipGraphNode_t next(Add add_node, A... arguments) {
        hipGraphNode_t node = nullptr;
        HIP_CHECK(add_node(&node, graph, &last, last ? 1 : 0, arguments...));
        return last = node;
    }
    template <class... P> hipGraphNode_t kernel(int device, void (*function)(P...), P... arguments) {
        void* pointers[] = {&arguments...};
        hipKernelNodeParams params = {};
        params.func = reinterpret_cast<void*>(function);
        params.gridDim = dim3(2);
        params.blockDim = dim3(128);
        params.kernelParams = pointers;
        pair::enter(device);
        return next(hipGraphAddKernelNode, &params);
    }
    void copy(void* to, const void* from, hipMemcpyKind kind) { next(hipGraphAddMemcpyNode1D, to, from, kBytes, kind); }
};

struct Host {
    const int* values;
    long sum;
};

void add_up(void* argument) {
    Host* host = static_cast<Host*>(argument);
    for (int i = 0; i < kCount; i++) host->sum += host->values[i];
}

} // namespace

int main(int argc, char** argv) {
    pair::begin("graph_nodes", argc, argv);
    int *values[2], *other[2];
    std::vector<int> want[2], input(kCount);
    pair::Queue queues[2] = {pair::Queue(0), pair::Queue(1)};
    for (int device : {0, 1}) {
        for (int i = 0; i < kCount; i++) want[device].push_back(i + device);
        values[device] = pair::allocate(device, want[device]);
        other[device] = pair::allocate<int>(device, kCount);
    }
    int* seen = nullptr;
    HIP_CHECK(hipHostMalloc(&seen, kBytes, 0));
    Host host = {seen, 0};
    long sum = 0;

    Graph inner;
    inner.kernel(1, add, values[1], static_cast<const int*>(other[1]));
    inner.kernel(0, add, values[0], static_cast<const int*>(other[0]));
    Graph graph;
    hipGraphNode_t scales[2];
    for (int device : {0, 1}) scales[device] = graph.kernel(device, scale, values[device], 3 - device);
    for (int device : {1, 0}) graph.copy(other[device], values[1 - device], hipMemcpyDeviceToDevice);
    graph.next(hipGraphAddChildGraphNode, inner.graph);
    hipMemsetParams fill = {};
    fill.elementSize = sizeof(int);
    fill.value = 1;
    fill.width = kCount / 2;
    fill.height = 1;
    for (int device : {0, 1}) {
        pair::enter(device);
        fill.dst = other[device];
        graph.next(hipGraphAddMemsetNode, &fill);
        graph.kernel(device, add, values[device], static_cast<const int*>(other[device]));
    }
    graph.copy(seen, values[1], hipMemcpyDeviceToHost);
    hipHostNodeParams function = {add_up, &host};
    graph.next(hipGraphAddHostNode, &function);
    graph.copy(other[1], seen, hipMemcpyHostToDevice);
    graph.kernel(1, add, values[1], static_cast<const int*>(other[1]));

    int factors[2] = {3, 2};
    for (int owner : {0, 1}) {
        hipGraphExec_t instance;
        pair::enter(owner);
        HIP_CHECK(hipGraphInstantiate(&instance, graph.graph, nullptr, nullptr, 0));
        for (int launch = 0; launch < 2 * kLaunches; launch++) {
            // The second stream is of the other device.
            const int device = launch % 2 == 0 ? owner : 1 - owner;
            if (launch == kLaunches) {
                if (owner == 0) pair::middle();
                factors[owner] = 5;
                void* pointers[] = {&values[owner], &factors[owner]};
                hipKernelNodeParams params = {};
                params.func = reinterpret_cast<void*>(scale);
                params.gridDim = dim3(2);
                params.blockDim = dim3(128);
                params.kernelParams = pointers;
                pair::enter(owner);
                HIP_CHECK(hipGraphExecKernelNodeSetParams(instance, scales[owner], &params));
            }
            queues[device].after(queues[1 - device]);
            pair::enter(device);
            HIP_CHECK(hipGraphLaunch(instance, queues[device].stream));
            for (int i = 0; i < kCount; i++) {
                unsigned now[2] = {static_cast<unsigned>(want[0][i]) * factors[0], static_cast<unsigned>(want[1][i]) * factors[1]};
                unsigned copied[2] = {now[1], now[0]};
                for (int at : {0, 1}) {
                    now[at] += copied[at];
                    now[at] += i < kCount / 2 ? 1 : copied[at];
                }
                sum += static_cast<int>(now[1]);
                now[1] += now[1];
                for (int at : {0, 1}) want[at][i] = static_cast<int>(now[at]);
            }
        }
        for (pair::Queue& queue : queues) pair::wait(queue.stream);
        factors[owner] = owner == 0 ? 3 : 2;
        HIP_CHECK(hipGraphExecDestroy(instance));
        for (int device : {0, 1}) {
            pair::enter(device);
            check::equal(device == 0 ? "values of device 0" : "values of device 1", pair::look(values[device], kCount), want[device]);
        }
        EXPECT(host.sum == sum);
    }
    HIP_CHECK(hipGraphDestroy(graph.graph));
    HIP_CHECK(hipGraphDestroy(inner.graph));
    HIP_CHECK(hipHostFree(seen));
    for (int device : {0, 1}) {
        HIP_CHECK(hipFree(values[device]));
        HIP_CHECK(hipFree(other[device]));
        queues[device].close();
    }
    return pair::finish();
}
