// Graphs: nodes of every kind, their parameters, instances and updates.
#include "../answers.h"

using namespace answers;

__global__ void kernel(int* out) {
    if (out != nullptr) out[threadIdx.x] = 1;
}
__device__ int symbol[64];

static hipGraph_t graph, other_graph;
static hipGraphNode_t empty, of_kernel, copy, set, host, record, wait_node, child, stranger;
static hipGraphExec_t exec;
static char *device, *pinned;
static char pageable[4096];
static int* nowhere;
static void* parameters[] = {&nowhere};
static hipKernelNodeParams kernels[8];
static hipMemsetParams sets[10];
static hipMemcpy3DParms copies[6];
static hipHostNodeParams hosts[2];
static hipEvent_t event;
static unsigned long long peak;

static void nobody(void*) {}
// A node that was added to the graph goes again.
static void of_node() {
    hipGraphNodeType type = {};
    note("type", int(hipGraphNodeGetType(results.node, &type)));
    note("type", int(type));
    note("destroy", int(hipGraphDestroyNode(results.node)));
}

int main(int count, char** arguments) {
    begin(count, arguments);
    Results& r = results;
    hipMalloc(&device, 4096);
    hipHostMalloc(&pinned, 4096);
    hipEventCreate(&event);
    hipStream_t stream;
    hipStreamCreate(&stream);
    for (auto& of : kernels) {
        of.func = reinterpret_cast<void*>(kernel);
        of.gridDim = dim3(1), of.blockDim = dim3(64), of.kernelParams = parameters;
    }
    kernels[1].func = nullptr;
    kernels[2].gridDim = dim3(0);
    kernels[3].blockDim = dim3(0);
    kernels[4].blockDim = dim3(1025);
    kernels[5].sharedMemBytes = 65537;
    kernels[6].kernelParams = nullptr;
    kernels[7].func = &nowhere;
    for (auto& of : sets) of.dst = device, of.elementSize = 1, of.width = 64, of.height = 1, of.value = 1, of.pitch = 64;
    sets[1].dst = nullptr;
    sets[2].elementSize = 3;
    sets[3].elementSize = 0;
    sets[4].width = 0;
    sets[5].height = 0;
    sets[6].height = 2, sets[6].pitch = 63;
    sets[7].width = 4097;
    sets[8].elementSize = 4, sets[8].dst = device + 1;
    sets[9].dst = pageable;
    for (auto& of : copies) {
        of.dstPtr = make_hipPitchedPtr(device, 64, 64, 4);
        of.srcPtr = make_hipPitchedPtr(pinned, 64, 64, 4);
        of.extent = make_hipExtent(64, 4, 1);
        of.kind = hipMemcpyHostToDevice;
    }
    copies[1].dstPtr.ptr = nullptr;
    copies[2].srcPtr.pitch = 63;
    copies[3].extent.width = 65;
    copies[4].kind = hipMemcpyKind(9);
    copies[5].extent.depth = 0;
    hosts[0].fn = nobody;
    const auto build = [] {
        hipGraphCreate(&graph, 0);
        hipGraphCreate(&other_graph, 0);
        hipGraphAddEmptyNode(&empty, graph, nullptr, 0);
        hipGraphAddEmptyNode(&stranger, other_graph, nullptr, 0);
        hipGraphAddKernelNode(&of_kernel, graph, &empty, 1, kernels);
        hipGraphAddMemcpyNode(&copy, graph, &empty, 1, copies);
        hipGraphAddMemsetNode(&set, graph, &empty, 1, sets);
        hipGraphAddHostNode(&host, graph, &empty, 1, hosts);
        hipGraphAddEventRecordNode(&record, graph, &empty, 1, event);
        hipGraphAddEventWaitNode(&wait_node, graph, &empty, 1, event);
        hipGraphAddChildGraphNode(&child, graph, &empty, 1, other_graph);
    };
    build();

    each(FUNCTION(hipGraphCreate), [] { note("destroy", int(hipGraphDestroy(results.graph))); }, any<hipGraph_t*>({OF(&r.graph), OF(nullptr)}), any<unsigned>({OF(0), OF(1)}));
    each(FUNCTION(hipGraphDestroy), nothing, any<hipGraph_t>({OF(nullptr)}));
    each(FUNCTION(hipGraphClone), [] { note("destroy", int(hipGraphDestroy(results.graph))); }, any<hipGraph_t*>({OF(&r.graph), OF(nullptr)}), any<hipGraph_t>({OF(graph), OF(nullptr)}));

    // Adding nodes: what they wait for, and their parameters.
    auto into = any<hipGraphNode_t*>({OF(&r.node), OF(nullptr)});
    auto graphs = any<hipGraph_t>({OF(graph), OF(nullptr)});
    static hipGraphNode_t twice[] = {empty, empty}, none[] = {nullptr};
    auto before = any<const hipGraphNode_t*>({OF(nullptr), OF(&empty), OF(&stranger), OF(twice), OF(none)});
    auto numbers = any<size_t>({OF(0), OF(1), OF(2)});
    each(FUNCTION(hipGraphAddEmptyNode), of_node, into, graphs, before, numbers);
    auto kernel_params = any<const hipKernelNodeParams*>({{"good", kernels}, {"no function", kernels + 1}, {"grid 0", kernels + 2}, {"block 0", kernels + 3}, {"block 1025", kernels + 4}, {"much LDS", kernels + 5}, {"no arguments", kernels + 6}, {"unknown", kernels + 7}, OF(nullptr)});
    each(FUNCTION(hipGraphAddKernelNode), of_node, into, graphs, before, numbers, kernel_params);
    auto set_params = any<const hipMemsetParams*>({{"good", sets}, {"to null", sets + 1}, {"elements of 3", sets + 2}, {"elements of 0", sets + 3}, {"width 0", sets + 4}, {"height 0", sets + 5}, {"pitch 63", sets + 6}, {"too wide", sets + 7}, {"not aligned", sets + 8}, {"pageable", sets + 9}, OF(nullptr)});
    each(FUNCTION(hipGraphAddMemsetNode), of_node, into, graphs, before, numbers, set_params);
    auto copy_params = any<const hipMemcpy3DParms*>({{"good", copies}, {"to null", copies + 1}, {"pitch 63", copies + 2}, {"width 65", copies + 3}, {"kind 9", copies + 4}, {"depth 0", copies + 5}, OF(nullptr)});
    each(FUNCTION(hipGraphAddMemcpyNode), of_node, into, graphs, before, numbers, copy_params);
    auto to = any<void*>({OF(device), OF(pageable), OF(nullptr)});
    auto from = any<const void*>({OF(pinned), OF(device + 2048), OF(pageable + 64), OF(nullptr)});
    auto lengths = any<size_t>({OF(64), OF(0), OF(4097)});
    auto kinds = any<hipMemcpyKind>({OF(hipMemcpyDefault), OF(hipMemcpyHostToDevice), OF(hipMemcpyDeviceToHost), OF(hipMemcpyDeviceToDevice), OF(hipMemcpyHostToHost), {"9", hipMemcpyKind(9)}});
    each(FUNCTION(hipGraphAddMemcpyNode1D), of_node, into, graphs, before, any<size_t>({OF(0)}), to, from, lengths, kinds);
    static const char unknown = 0;
    auto symbols = any<const void*>({{"symbol", HIP_SYMBOL(symbol)}, OF(&unknown), OF(nullptr)});
    each(FUNCTION(hipGraphAddMemcpyNodeToSymbol), of_node, into, graphs, before, any<size_t>({OF(0)}), symbols, any<const void*>({OF(pinned), OF(nullptr)}), any<size_t>({OF(64), OF(0), OF(257)}), any<size_t>({OF(0), OF(256)}), any<hipMemcpyKind>({OF(hipMemcpyHostToDevice), OF(hipMemcpyDeviceToDevice), {"9", hipMemcpyKind(9)}}));
    each(FUNCTION(hipGraphAddMemcpyNodeFromSymbol), of_node, into, graphs, before, any<size_t>({OF(0)}), any<void*>({OF(pinned), OF(nullptr)}), symbols, any<size_t>({OF(64), OF(0), OF(257)}), any<size_t>({OF(0), OF(256)}), any<hipMemcpyKind>({OF(hipMemcpyDeviceToHost), OF(hipMemcpyDeviceToDevice), {"9", hipMemcpyKind(9)}}));
    each(FUNCTION(hipGraphAddHostNode), of_node, into, graphs, before, numbers, any<const hipHostNodeParams*>({{"good", hosts}, {"no function", hosts + 1}, OF(nullptr)}));
    each(FUNCTION(hipGraphAddEventRecordNode), of_node, into, graphs, before, numbers, any<hipEvent_t>({OF(event), OF(nullptr)}));
    each(FUNCTION(hipGraphAddEventWaitNode), of_node, into, graphs, before, numbers, any<hipEvent_t>({OF(event), OF(nullptr)}));
    each(FUNCTION(hipGraphAddChildGraphNode), of_node, into, graphs, before, numbers, any<hipGraph_t>({OF(other_graph), OF(nullptr), OF(graph)}));
    each(FUNCTION(hipGraphAddMemFreeNode), nothing, into, graphs, before, any<size_t>({OF(0)}), any<void*>({OF(nullptr), OF(device)}));

    // A library may have kept nodes that it has refused.
    hipGraphDestroy(graph);
    build();
    graphs = any<hipGraph_t>({OF(graph), OF(nullptr)});
    // What nodes are.
    auto nodes = any<hipGraphNode_t>({OF(of_kernel), OF(empty), OF(copy), OF(set), OF(host), OF(record), OF(wait_node), OF(child), OF(nullptr)});
    each(FUNCTION(hipGraphNodeGetType), nothing, nodes, any<hipGraphNodeType*>({{"&r.number", reinterpret_cast<hipGraphNodeType*>(&r.number)}, OF(nullptr)}));
    static hipGraphNode_t list[32];
    auto lists = any<hipGraphNode_t*>({OF(list), OF(nullptr)});
    auto counted = any<size_t*>({{"8", [] { static size_t number; return &number; }()}, OF(nullptr)});
    each("hipGraphGetNodes", [=](hipGraph_t of, hipGraphNode_t* into, size_t* number) { if (number != nullptr) *number = 8; const hipError_t error = hipGraphGetNodes(of, into, number); if (number != nullptr) note("count", *number); return line += " error=", error; }, nothing, graphs, lists, counted);
    each("hipGraphGetRootNodes", [=](hipGraph_t of, hipGraphNode_t* into, size_t* number) { if (number != nullptr) *number = 8; const hipError_t error = hipGraphGetRootNodes(of, into, number); if (number != nullptr) note("count", *number); return line += " error=", error; }, nothing, graphs, lists, counted);
    each("hipGraphGetEdges", [=](hipGraph_t of, hipGraphNode_t* from, hipGraphNode_t* to, size_t* number) { if (number != nullptr) *number = 8; const hipError_t error = hipGraphGetEdges(of, from, to, number); if (number != nullptr) note("count", *number); return line += " error=", error; }, nothing, graphs, lists, lists, counted);
    each("hipGraphNodeGetDependencies", [=](hipGraphNode_t of, hipGraphNode_t* into, size_t* number) { if (number != nullptr) *number = 8; const hipError_t error = hipGraphNodeGetDependencies(of, into, number); if (number != nullptr) note("count", *number); return line += " error=", error; }, nothing, nodes, lists, counted);
    each("hipGraphNodeGetDependentNodes", [=](hipGraphNode_t of, hipGraphNode_t* into, size_t* number) { if (number != nullptr) *number = 8; const hipError_t error = hipGraphNodeGetDependentNodes(of, into, number); if (number != nullptr) note("count", *number); return line += " error=", error; }, nothing, nodes, lists, counted);
    each("hipGraphAddDependencies", [](hipGraph_t of, const hipGraphNode_t* a, const hipGraphNode_t* b, size_t number) { return hipGraphAddDependencies(of, a, b, number); }, [] { }, graphs, any<const hipGraphNode_t*>({OF(&of_kernel), OF(&empty), OF(&stranger), OF(none), OF(nullptr)}), any<const hipGraphNode_t*>({OF(&set), OF(&of_kernel), OF(&stranger), OF(none), OF(nullptr)}), any<size_t>({OF(1), OF(0)}));
    each("hipGraphRemoveDependencies", [](hipGraph_t of, const hipGraphNode_t* a, const hipGraphNode_t* b, size_t number) { return hipGraphRemoveDependencies(of, a, b, number); }, [] { }, graphs, any<const hipGraphNode_t*>({OF(&of_kernel), OF(&stranger), OF(none), OF(nullptr)}), any<const hipGraphNode_t*>({OF(&set), OF(&copy), OF(&stranger), OF(none), OF(nullptr)}), any<size_t>({OF(1), OF(0)}));
    each(FUNCTION(hipGraphNodeFindInClone), nothing, into, any<hipGraphNode_t>({OF(empty), OF(nullptr)}), any<hipGraph_t>({OF(other_graph), OF(graph), OF(nullptr)}));
    each(FUNCTION(hipGraphDestroyNode), nothing, any<hipGraphNode_t>({OF(nullptr)}));

    // Parameters of nodes, asked for and set.
    auto some = any<hipGraphNode_t>({OF(of_kernel), OF(empty), OF(nullptr)});
    static hipKernelNodeParams kernel_out;
    each(FUNCTION(hipGraphKernelNodeGetParams), [] { note("block", kernel_out.blockDim.x); }, some, any<hipKernelNodeParams*>({OF(&kernel_out), OF(nullptr)}));
    each(FUNCTION(hipGraphKernelNodeSetParams), nothing, any<hipGraphNode_t>({OF(of_kernel), OF(nullptr)}), kernel_params);
    hipGraphKernelNodeSetParams(of_kernel, kernels);
    static hipMemsetParams set_out;
    each(FUNCTION(hipGraphMemsetNodeGetParams), [] { note("width", set_out.width); }, any<hipGraphNode_t>({OF(set), OF(nullptr)}), any<hipMemsetParams*>({OF(&set_out), OF(nullptr)}));
    each(FUNCTION(hipGraphMemsetNodeSetParams), nothing, any<hipGraphNode_t>({OF(set), OF(nullptr)}), set_params);
    hipGraphMemsetNodeSetParams(set, sets);
    static hipMemcpy3DParms copy_out;
    each(FUNCTION(hipGraphMemcpyNodeGetParams), [] { note("width", copy_out.extent.width); note("kind", int(copy_out.kind)); }, any<hipGraphNode_t>({OF(copy), OF(nullptr)}), any<hipMemcpy3DParms*>({OF(&copy_out), OF(nullptr)}));
    each(FUNCTION(hipGraphMemcpyNodeSetParams), nothing, any<hipGraphNode_t>({OF(copy), OF(nullptr)}), copy_params);
    each(FUNCTION(hipGraphMemcpyNodeSetParams1D), nothing, any<hipGraphNode_t>({OF(copy), OF(nullptr)}), to, from, lengths, kinds);
    hipGraphMemcpyNodeSetParams(copy, copies);
    static hipHostNodeParams host_out;
    each(FUNCTION(hipGraphHostNodeGetParams), [] { note("function", host_out.fn == nobody); }, any<hipGraphNode_t>({OF(host), OF(nullptr)}), any<hipHostNodeParams*>({OF(&host_out), OF(nullptr)}));
    each(FUNCTION(hipGraphHostNodeSetParams), nothing, any<hipGraphNode_t>({OF(host), OF(nullptr)}), any<const hipHostNodeParams*>({{"good", hosts}, {"no function", hosts + 1}, OF(nullptr)}));
    hipGraphHostNodeSetParams(host, hosts);
    each(FUNCTION(hipGraphEventRecordNodeGetEvent), nothing, any<hipGraphNode_t>({OF(record), OF(nullptr)}), any<hipEvent_t*>({OF(&r.event), OF(nullptr)}));
    each(FUNCTION(hipGraphEventRecordNodeSetEvent), nothing, any<hipGraphNode_t>({OF(record), OF(nullptr)}), any<hipEvent_t>({OF(event), OF(nullptr)}));
    each(FUNCTION(hipGraphEventWaitNodeGetEvent), nothing, any<hipGraphNode_t>({OF(wait_node), OF(nullptr)}), any<hipEvent_t*>({OF(&r.event), OF(nullptr)}));
    each(FUNCTION(hipGraphEventWaitNodeSetEvent), nothing, any<hipGraphNode_t>({OF(wait_node), OF(nullptr)}), any<hipEvent_t>({OF(event), OF(nullptr)}));
    each(FUNCTION(hipGraphChildGraphNodeGetGraph), nothing, any<hipGraphNode_t>({OF(child), OF(nullptr)}), any<hipGraph_t*>({OF(&r.graph), OF(nullptr)}));

    // Instances.
    each("hipGraphInstantiate", [](hipGraphExec_t* to, hipGraph_t of, hipGraphNode_t* node, char* text, size_t size) { return hipGraphInstantiate(to, of, node, text, size); }, [] { note("destroy", int(hipGraphExecDestroy(results.exec))); }, any<hipGraphExec_t*>({OF(&r.exec), OF(nullptr)}), graphs, any<hipGraphNode_t*>({OF(nullptr), OF(&r.node)}), any<char*>({OF(nullptr), OF(r.text)}), any<size_t>({OF(0), OF(31)}));
    each(FUNCTION(hipGraphInstantiateWithFlags), [] { note("destroy", int(hipGraphExecDestroy(results.exec))); }, any<hipGraphExec_t*>({OF(&r.exec), OF(nullptr)}), graphs, any<unsigned long long>({OF(0), OF(hipGraphInstantiateFlagAutoFreeOnLaunch), OF(hipGraphInstantiateFlagUpload), OF(hipGraphInstantiateFlagDeviceLaunch), OF(hipGraphInstantiateFlagUseNodePriority), OF(16), OF(3)}));
    hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0);
    auto execs = any<hipGraphExec_t>({OF(exec), OF(nullptr)});
    auto streams = any<hipStream_t>({OF(stream), OF(nullptr), OF(hipStreamPerThread)});
    each(FUNCTION(hipGraphLaunch), settle, execs, streams);
    each(FUNCTION(hipGraphUpload), settle, execs, streams);
    each("hipGraphExecGetFlags", [](hipGraphExec_t of, unsigned long long* to) { return hipGraphExecGetFlags(of, to); }, nothing, execs, any<unsigned long long*>({OF(&r.id), OF(nullptr)}));
    each("hipGraphExecUpdate", [](hipGraphExec_t of, hipGraph_t from, hipGraphNode_t* node, hipGraphExecUpdateResult* result) { return hipGraphExecUpdate(of, from, node, result); }, nothing, execs, any<hipGraph_t>({OF(graph), OF(other_graph), OF(nullptr)}), into, any<hipGraphExecUpdateResult*>({{"&r.number", reinterpret_cast<hipGraphExecUpdateResult*>(&r.number)}, OF(nullptr)}));
    each(FUNCTION(hipGraphExecKernelNodeSetParams), nothing, execs, any<hipGraphNode_t>({OF(of_kernel), OF(stranger), OF(nullptr)}), kernel_params);
    each(FUNCTION(hipGraphExecMemsetNodeSetParams), nothing, execs, any<hipGraphNode_t>({OF(set), OF(stranger), OF(nullptr)}), set_params);
    each("hipGraphExecMemcpyNodeSetParams", [](hipGraphExec_t of, hipGraphNode_t node, const hipMemcpy3DParms* with) { return hipGraphExecMemcpyNodeSetParams(of, node, const_cast<hipMemcpy3DParms*>(with)); }, nothing, execs, any<hipGraphNode_t>({OF(copy), OF(stranger), OF(nullptr)}), copy_params);
    each(FUNCTION(hipGraphExecMemcpyNodeSetParams1D), nothing, execs, any<hipGraphNode_t>({OF(copy), OF(stranger), OF(nullptr)}), to, from, lengths, kinds);
    each(FUNCTION(hipGraphExecHostNodeSetParams), nothing, execs, any<hipGraphNode_t>({OF(host), OF(stranger), OF(nullptr)}), any<const hipHostNodeParams*>({{"good", hosts}, {"no function", hosts + 1}, OF(nullptr)}));
    each(FUNCTION(hipGraphExecEventRecordNodeSetEvent), nothing, execs, any<hipGraphNode_t>({OF(record), OF(stranger), OF(nullptr)}), any<hipEvent_t>({OF(event), OF(nullptr)}));
    each(FUNCTION(hipGraphExecEventWaitNodeSetEvent), nothing, execs, any<hipGraphNode_t>({OF(wait_node), OF(stranger), OF(nullptr)}), any<hipEvent_t>({OF(event), OF(nullptr)}));
    each(FUNCTION(hipGraphExecChildGraphNodeSetParams), nothing, execs, any<hipGraphNode_t>({OF(child), OF(stranger), OF(nullptr)}), any<hipGraph_t>({OF(other_graph), OF(graph), OF(nullptr)}));
    each(FUNCTION(hipGraphNodeSetEnabled), nothing, execs, any<hipGraphNode_t>({OF(of_kernel), OF(empty), OF(set), OF(copy), OF(host), OF(stranger), OF(nullptr)}), any<unsigned>({OF(1), OF(0), OF(2)}));
    each(FUNCTION(hipGraphNodeGetEnabled), nothing, execs, any<hipGraphNode_t>({OF(of_kernel), OF(empty), OF(set), OF(copy), OF(host), OF(stranger), OF(nullptr)}), any<unsigned*>({OF(&r.flags), OF(nullptr)}));
    each(FUNCTION(hipGraphExecDestroy), nothing, any<hipGraphExec_t>({OF(nullptr)}));
    each(FUNCTION(hipGraphDebugDotPrint), nothing, graphs, any<const char*>({OF("/dev/null"), OF("/nowhere/file"), OF(nullptr)}), any<unsigned>({OF(0), OF(1)}));
    each(FUNCTION(hipDeviceGetGraphMemAttribute), nothing, any<int>({OF(0), OF(1), OF(-1)}), any<hipGraphMemAttributeType>({OF(hipGraphMemAttrUsedMemCurrent), OF(hipGraphMemAttrReservedMemHigh), {"9", hipGraphMemAttributeType(9)}}), any<void*>({OF(&r.id), OF(nullptr)}));
    each("hipDeviceSetGraphMemAttribute", [](int of, hipGraphMemAttributeType which, void* from) { peak = 0; return hipDeviceSetGraphMemAttribute(of, which, from); }, nothing, any<int>({OF(0), OF(1), OF(-1)}), any<hipGraphMemAttributeType>({OF(hipGraphMemAttrUsedMemHigh), OF(hipGraphMemAttrUsedMemCurrent), {"9", hipGraphMemAttributeType(9)}}), any<void*>({OF(&peak), OF(nullptr)}));
    each(FUNCTION(hipDeviceGraphMemTrim), nothing, any<int>({OF(0), OF(1), OF(-1)}));
    static hipUserObject_t object;
    each("hipUserObjectCreate", [](hipUserObject_t* to, void* of, hipHostFn_t destroy, unsigned references, unsigned flags) { return hipUserObjectCreate(to, of, destroy, references, flags); }, [] { note("release", int(hipUserObjectRelease(object, 1))); }, any<hipUserObject_t*>({OF(&object), OF(nullptr)}), any<void*>({OF(&object), OF(nullptr)}), any<hipHostFn_t>({OF(nobody), OF(nullptr)}), any<unsigned>({OF(1), OF(0)}), any<unsigned>({OF(hipUserObjectNoDestructorSync), OF(0), OF(2)}));
    hipUserObjectCreate(&object, &object, nobody, 8, hipUserObjectNoDestructorSync);
    each(FUNCTION(hipUserObjectRetain), nothing, any<hipUserObject_t>({OF(object), OF(nullptr)}), any<unsigned>({OF(1), OF(0)}));
    each(FUNCTION(hipGraphRetainUserObject), nothing, graphs, any<hipUserObject_t>({OF(object), OF(nullptr)}), any<unsigned>({OF(1), OF(0)}), any<unsigned>({OF(0), OF(hipGraphUserObjectMove), OF(2)}));
    each(FUNCTION(hipGraphReleaseUserObject), nothing, graphs, any<hipUserObject_t>({OF(object), OF(nullptr)}), any<unsigned>({OF(1), OF(0)}));
    return 0;
}
