// Graph nodes that copy to and from variables of the device, and other parameters for them, in a graph and in one that is instantiated.
#include "check.h"

__device__ int table[16];
__constant__ int numbers[4];

int main() {
    check::begin("graph_symbols");
    std::vector<int> input(16), other(16), few{2, 3, 4, 5}, output(16), want(16);
    for (int i = 0; i < 16; i++) {
        input[i] = i + 1;
        other[i] = 100 + i;
    }
    const void *symbol = HIP_SYMBOL(table), *constant = HIP_SYMBOL(numbers);
    const size_t bytes = 16 * sizeof(int), part = 4 * sizeof(int);
    void* on_device = nullptr;
    HIP_CHECK(hipGetSymbolAddress(&on_device, constant));
    // The table gets the input, then the numbers in its second quarter.
    hipGraph_t graph = nullptr;
    HIP_CHECK(hipGraphCreate(&graph, 0));
    hipGraphNode_t up, more, inside, down, refused = nullptr, empty;
    HIP_CHECK(hipGraphAddMemcpyNodeToSymbol(&up, graph, nullptr, 0, symbol, input.data(), bytes, 0, hipMemcpyHostToDevice));
    HIP_CHECK(hipGraphAddMemcpyNodeToSymbol(&more, graph, &up, 1, constant, few.data(), part, 0, hipMemcpyHostToDevice));
    HIP_CHECK(hipGraphAddMemcpyNodeToSymbol(&inside, graph, &more, 1, symbol, on_device, part, part, hipMemcpyDeviceToDevice));
    HIP_CHECK(hipGraphAddMemcpyNodeFromSymbol(&down, graph, &inside, 1, output.data(), symbol, bytes, 0, hipMemcpyDeviceToHost));
    hipGraphNodeType type;
    HIP_CHECK(hipGraphNodeGetType(up, &type));
    EXPECT(type == hipGraphNodeTypeMemcpy);

    hipGraphExec_t exec = nullptr;
    HIP_CHECK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    auto launched = [&](const char* what, hipGraphExec_t which) {
        for (int round = 0; round < 3; round++) {
            std::fill(output.begin(), output.end(), -1);
            HIP_CHECK(hipGraphLaunch(which, nullptr));
            HIP_CHECK(hipStreamSynchronize(nullptr));
            check::equal(what, output, want);
        }
    };
    for (int i = 0; i < 16; i++) want[i] = i / 4 == 1 ? few[i - 4] : input[i];
    launched("launch", exec);
    want[3] = input[3] = 50; // it is read again
    launched("other bytes", exec);

    // Other memory and other parts, in the instance and then in the graph.
    HIP_CHECK(hipGraphExecMemcpyNodeSetParamsToSymbol(exec, up, symbol, other.data(), bytes, 0, hipMemcpyHostToDevice));
    HIP_CHECK(hipGraphExecMemcpyNodeSetParamsFromSymbol(exec, down, output.data(), symbol, part, 2 * sizeof(int), hipMemcpyDeviceToHost));
    want.assign(16, -1);
    for (int i = 0; i < 4; i++) want[i] = i < 2 ? other[2 + i] : few[i - 2];
    launched("other parameters of an instance", exec);
    HIP_CHECK(hipGraphMemcpyNodeSetParamsToSymbol(more, constant, input.data(), part / 2, part / 2, hipMemcpyHostToDevice));
    HIP_CHECK(hipGraphMemcpyNodeSetParamsFromSymbol(down, output.data() + 1, symbol, 2 * part, sizeof(int), hipMemcpyDeviceToHost));
    hipGraphExec_t changed = nullptr;
    HIP_CHECK(hipGraphInstantiate(&changed, graph, nullptr, nullptr, 0));
    const int now[] = {few[0], few[1], input[0], input[1]};
    want.assign(16, -1);
    for (int i = 1; i < 9; i++) want[i] = i / 4 == 1 ? now[i - 4] : input[i];
    launched("other parameters of a graph", changed);

    const int* unknown = few.data();
    HIP_CHECK(hipGraphAddEmptyNode(&empty, graph, nullptr, 0));
    const auto to = hipMemcpyHostToDevice, from = hipMemcpyDeviceToHost;
    EXPECT_ERROR(hipGraphAddMemcpyNodeToSymbol(nullptr, graph, nullptr, 0, symbol, input.data(), bytes, 0, to), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphAddMemcpyNodeToSymbol(&refused, nullptr, nullptr, 0, symbol, input.data(), bytes, 0, to), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphAddMemcpyNodeToSymbol(&refused, graph, nullptr, 0, nullptr, input.data(), bytes, 0, to), hipErrorInvalidSymbol);
    EXPECT_ERROR(hipGraphAddMemcpyNodeToSymbol(&refused, graph, nullptr, 0, unknown, input.data(), bytes, 0, to), hipErrorInvalidSymbol);
    EXPECT_ERROR(hipGraphAddMemcpyNodeToSymbol(&refused, graph, nullptr, 0, symbol, nullptr, bytes, 0, to), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphAddMemcpyNodeToSymbol(&refused, graph, nullptr, 0, symbol, input.data(), 0, 0, to), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphAddMemcpyNodeToSymbol(&refused, graph, nullptr, 0, symbol, input.data(), bytes, 1, to), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphAddMemcpyNodeFromSymbol(&refused, graph, nullptr, 0, output.data(), nullptr, bytes, 0, from), hipErrorInvalidSymbol);
    EXPECT_ERROR(hipGraphAddMemcpyNodeFromSymbol(&refused, graph, nullptr, 0, output.data(), unknown, bytes, 0, from), hipErrorInvalidSymbol);
    EXPECT_ERROR(hipGraphAddMemcpyNodeFromSymbol(&refused, graph, nullptr, 0, nullptr, symbol, bytes, 0, from), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphAddMemcpyNodeFromSymbol(&refused, graph, nullptr, 0, output.data(), symbol, bytes, 1, from), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphMemcpyNodeSetParamsToSymbol(nullptr, symbol, input.data(), bytes, 0, to), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphMemcpyNodeSetParamsToSymbol(up, nullptr, input.data(), bytes, 0, to), hipErrorInvalidSymbol);
    EXPECT_ERROR(hipGraphMemcpyNodeSetParamsToSymbol(up, symbol, input.data(), bytes, 4, to), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphMemcpyNodeSetParamsFromSymbol(down, nullptr, symbol, bytes, 0, from), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphExecMemcpyNodeSetParamsToSymbol(nullptr, up, symbol, input.data(), bytes, 0, to), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphExecMemcpyNodeSetParamsToSymbol(exec, nullptr, symbol, input.data(), bytes, 0, to), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphExecMemcpyNodeSetParamsToSymbol(exec, up, nullptr, input.data(), bytes, 0, to), hipErrorInvalidSymbol);
    EXPECT_ERROR(hipGraphExecMemcpyNodeSetParamsFromSymbol(exec, down, output.data(), symbol, bytes, 4, from), hipErrorInvalidValue);

    for (hipGraphExec_t each : {exec, changed}) HIP_CHECK(hipGraphExecDestroy(each));
    HIP_CHECK(hipGraphDestroy(graph));
    return check::finish();
}
