// Descriptions of graphs: a node for each node and an edge for each dependency, also of child graphs; flags add what the nodes do.
#include "check.h"

#include <unistd.h>

__global__ void put(int* at, int value) { *at = value; }

static char path[] = "/tmp/hipr-graph-XXXXXX";

static std::string described(hipGraph_t graph, unsigned flags) {
    HIP_CHECK(hipGraphDebugDotPrint(graph, path, flags));
    std::string text;
    FILE* file = std::fopen(path, "r");
    if (file == nullptr) return text;
    for (int c; (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
    std::fclose(file);
    return text;
}

static int count(const std::string& text, const std::string& part) {
    int found = 0;
    for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at++) found++;
    return found;
}

static bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

static void function(void*) {}

int main() {
    check::begin("graph_dot");
    EXPECT(close(mkstemp(path)) == 0);
    int* memory = nullptr;
    HIP_CHECK(hipMalloc(&memory, 4096));
    hipEvent_t event = nullptr;
    HIP_CHECK(hipEventCreate(&event));

    hipGraph_t graph = nullptr, child = nullptr;
    HIP_CHECK(hipGraphCreate(&graph, 0));
    HIP_CHECK(hipGraphCreate(&child, 0));
    std::string empty = described(child, 0);
    EXPECT(empty.rfind("digraph", 0) == 0 && count(empty, "{") == count(empty, "}") && !has(empty, "\"["));

    int value = 7, host[4];
    void* arguments[] = {&memory, &value};
    hipKernelNodeParams launch{};
    launch.func = reinterpret_cast<void*>(put);
    launch.gridDim = dim3(21, 2, 1);
    launch.blockDim = dim3(32, 2, 1);
    launch.kernelParams = arguments;
    hipMemsetParams fill{};
    fill.dst = memory + 4;
    fill.elementSize = 4;
    fill.value = 9;
    fill.width = 12;
    fill.height = 1;
    hipHostNodeParams call{function, host};
    hipGraphNode_t kernel, set, copy, called, record, wait, inner[2], whole;
    HIP_CHECK(hipGraphAddKernelNode(&kernel, graph, nullptr, 0, &launch));
    HIP_CHECK(hipGraphAddMemsetNode(&set, graph, nullptr, 0, &fill));
    hipGraphNode_t both[] = {kernel, set};
    HIP_CHECK(hipGraphAddMemcpyNode1D(&copy, graph, both, 2, host, memory, 16, hipMemcpyDeviceToHost));
    HIP_CHECK(hipGraphAddHostNode(&called, graph, &copy, 1, &call));
    HIP_CHECK(hipGraphAddEventRecordNode(&record, graph, nullptr, 0, event));
    HIP_CHECK(hipGraphAddEventWaitNode(&wait, graph, &record, 1, event));
    HIP_CHECK(hipGraphAddEmptyNode(&inner[0], child, nullptr, 0));
    HIP_CHECK(hipGraphAddKernelNode(&inner[1], child, inner, 1, &launch));
    HIP_CHECK(hipGraphAddChildGraphNode(&whole, graph, &wait, 1, child));

    std::string plain = described(graph, 0);
    EXPECT(plain.rfind("digraph", 0) == 0 && count(plain, "{") == count(plain, "}"));
    EXPECT(count(plain, "subgraph cluster_") == 2);
    EXPECT(count(plain, "\"[") == 9);
    EXPECT(count(plain, " -> ") == 6);
    for (const char* part : {"put", "MEMSET", "MEMCPY", "HOST", "EVENT_RECORD", "EVENT_WAIT", "EMPTY"}) EXPECT(has(plain, part));
    EXPECT(count(plain, "put") == 2 && !has(plain, "(21,2,1)"));
    EXPECT(count(described(child, 0), "\"[") == 2);

    // What flags add; the address of memory is there only if parameters are asked for.
    char address[32];
    std::snprintf(address, sizeof address, "%p", static_cast<void*>(memory));
    EXPECT(has(described(graph, hipGraphDebugDotFlagsKernelNodeParams), "(21,2,1)"));
    EXPECT(has(described(graph, hipGraphDebugDotFlagsMemcpyNodeParams), address) && !has(plain, address));
    std::snprintf(address, sizeof address, "%p", static_cast<void*>(memory + 4));
    EXPECT(has(described(graph, hipGraphDebugDotFlagsMemsetNodeParams), address) && !has(plain, address));
    std::string all = described(graph, hipGraphDebugDotFlagsVerbose);
    EXPECT(has(all, address) && has(all, "(21,2,1)"));
    EXPECT(count(all, " -> ") == 6 && count(all, "\"[") == 9);
    EXPECT(described(graph, 0x80000000u) == plain); // no flag of HIP's

    EXPECT_ERROR(hipGraphDebugDotPrint(nullptr, path, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphDebugDotPrint(graph, nullptr, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphDebugDotPrint(graph, "", 0), hipErrorOperatingSystem);
    EXPECT_ERROR(hipGraphDebugDotPrint(graph, "/tmp", 0), hipErrorOperatingSystem);
    EXPECT_ERROR(hipGraphDebugDotPrint(graph, "/nowhere/at/all", 0), hipErrorOperatingSystem);
    EXPECT(unlink(path) == 0);
    HIP_CHECK(hipGraphDestroy(graph));
    HIP_CHECK(hipGraphDestroy(child));
    HIP_CHECK(hipEventDestroy(event));
    HIP_CHECK(hipFree(memory));
    return check::finish();
}
