// Graphs, what graphs.hip does not have: nodes of memory, values and the driver's kinds, attributes of kernels, other ways to make instances.
#include "../answers.h"

using namespace answers;

__global__ void kernel(int* out) {
    if (out != nullptr) out[threadIdx.x] = 1;
}
__device__ int symbol[64];

static hipGraph_t graph, other_graph;
static hipGraphNode_t of_kernel, second_kernel, copy, set, empty, allocation, release, batch, driver_copy, driver_set, stranger;
static hipGraphExec_t exec;
static char *device, *second, *pinned;
static char pageable[4096];
static int* nowhere;
static void* parameters[] = {&nowhere};
static hipKernelNodeParams kernels[2];
static hipMemsetParams sets[6];
#if HIP_VERSION_MAJOR < 7
using DriverSet = HIP_MEMSET_NODE_PARAMS;
#else
using DriverSet = hipMemsetParams;
#endif
static DriverSet driver_sets[6];
static HIP_MEMCPY3D copies[6];
static hipMemAllocNodeParams allocations[8];
static hipMemAccessDesc reach;
static hipStreamBatchMemOpParams operations[4];
static hipBatchMemOpNodeParams batches[8];

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
    hipMalloc(&second, 4096);
    hipHostMalloc(&pinned, 4096);
    hipStream_t stream;
    hipStreamCreate(&stream);
    for (auto& of : kernels) {
        of.func = reinterpret_cast<void*>(kernel);
        of.gridDim = dim3(1), of.blockDim = dim3(64), of.kernelParams = parameters;
    }
    for (auto& of : sets) of.dst = device, of.elementSize = 1, of.width = 64, of.height = 1, of.value = 1, of.pitch = 64;
    sets[1].dst = nullptr;
    sets[2].elementSize = 3;
    sets[3].width = 0;
    sets[4].height = 2, sets[4].pitch = 63;
    sets[5].dst = pageable;
    for (int i = 0; i < 6; ++i) {
        DriverSet& of = driver_sets[i];
        of.dst = decltype(of.dst)(sets[i].dst), of.elementSize = sets[i].elementSize, of.width = sets[i].width, of.height = sets[i].height, of.value = sets[i].value, of.pitch = sets[i].pitch;
    }
    for (auto& of : copies) {
        of = {};
        of.srcMemoryType = hipMemoryTypeDevice, of.srcDevice = hipDeviceptr_t(device), of.srcPitch = 64, of.srcHeight = 1;
        of.dstMemoryType = hipMemoryTypeDevice, of.dstDevice = hipDeviceptr_t(second), of.dstPitch = 64, of.dstHeight = 1;
        of.WidthInBytes = 64, of.Height = 1, of.Depth = 1;
    }
    copies[1].srcDevice = nullptr;
    copies[2].WidthInBytes = 0;
    copies[3].srcPitch = 63;
    copies[4].dstMemoryType = hipMemoryTypeHost, copies[4].dstHost = pageable;
    copies[5].Depth = 0;
    reach.location = {hipMemLocationTypeDevice, 0}, reach.flags = hipMemAccessFlagsProtReadWrite;
    for (auto& of : allocations) of.poolProps.allocType = hipMemAllocationTypePinned, of.poolProps.location = {hipMemLocationTypeDevice, 0}, of.bytesize = 4096;
    allocations[1].bytesize = 0;
    allocations[2].poolProps.allocType = hipMemAllocationType(9);
    allocations[3].poolProps.location.type = hipMemLocationTypeInvalid;
    allocations[4].poolProps.location.id = 1;
    allocations[5].accessDescs = &reach, allocations[5].accessDescCount = 1;
    allocations[6].accessDescCount = 1;
    allocations[7].bytesize = size_t(1) << 50;
    operations[0].writeValue = {hipStreamMemOpWriteValue32, hipDeviceptr_t(device), {5}, 0, nullptr};
    operations[1].waitValue = {hipStreamMemOpWaitValue32, hipDeviceptr_t(device), {5}, hipStreamWaitValueEq, nullptr};
    operations[2].writeValue = {hipStreamBatchMemOpType(99), hipDeviceptr_t(device), {5}, 0, nullptr};
    operations[3].writeValue = {hipStreamMemOpWriteValue32, nullptr, {5}, 0, nullptr};
    hipCtx_t context = nullptr;
    hipDevicePrimaryCtxRetain(&context, 0);
    for (auto& of : batches) of.ctx = context, of.count = 2, of.paramArray = operations;
    batches[1].count = 0;
    batches[2].paramArray = nullptr;
    batches[3].flags = 1;
    batches[4].count = 257;
    batches[5].count = 1, batches[5].paramArray = operations + 2;
    batches[7].ctx = nullptr;
    batches[6].count = 1, batches[6].paramArray = operations + 3;

    hipGraphCreate(&graph, 0);
    hipGraphCreate(&other_graph, 0);
    hipGraphAddEmptyNode(&stranger, other_graph, nullptr, 0);
    hipGraphAddEmptyNode(&empty, graph, nullptr, 0);
    hipGraphAddKernelNode(&of_kernel, graph, nullptr, 0, kernels);
    hipGraphAddKernelNode(&second_kernel, graph, nullptr, 0, kernels + 1);
    hipGraphAddMemsetNode(&set, graph, nullptr, 0, sets);
    hipGraphAddMemcpyNode1D(&copy, graph, nullptr, 0, device, second, 64, hipMemcpyDeviceToDevice);
    hipDrvGraphAddMemcpyNode(&driver_copy, graph, nullptr, 0, copies, context);
    hipDrvGraphAddMemsetNode(&driver_set, graph, nullptr, 0, driver_sets, context);
    hipGraphAddBatchMemOpNode(&batch, graph, nullptr, 0, batches);
    hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0);

    auto to_node = any<hipGraphNode_t*>({OF(&r.node), OF(nullptr)});
    auto graphs = any<hipGraph_t>({OF(graph), OF(nullptr)});
    static hipGraphNode_t dependency[2];
    dependency[0] = empty, dependency[1] = stranger;
    auto dependencies = any<const hipGraphNode_t*>({OF(nullptr), OF(dependency), OF(dependency + 1)});
    auto numbers = any<size_t>({OF(0), OF(1), OF(SIZE_MAX)});
    auto contexts = any<hipCtx_t>({OF(context), OF(nullptr)});
    auto set_parameters = any<const DriverSet*>({OF(driver_sets), {"null", nullptr}, {"nowhere", driver_sets + 1}, {"elements of 3", driver_sets + 2}, {"width 0", driver_sets + 3}, {"pitch 63", driver_sets + 4}, {"pageable", driver_sets + 5}});
    auto copy_parameters = any<const HIP_MEMCPY3D*>({OF(copies), {"null", nullptr}, {"from nowhere", copies + 1}, {"width 0", copies + 2}, {"pitch 63", copies + 3}, {"to pageable", copies + 4}, {"depth 0", copies + 5}});
    each(FUNCTION(hipDrvGraphAddMemcpyNode), of_node, to_node, graphs, dependencies, numbers, copy_parameters, contexts);
    each(FUNCTION(hipDrvGraphAddMemsetNode), of_node, to_node, graphs, dependencies, numbers, set_parameters, contexts);
    each("hipDrvGraphAddMemFreeNode", [](hipGraphNode_t* to, hipGraph_t of, void* at) { return hipDrvGraphAddMemFreeNode(to, of, nullptr, 0, hipDeviceptr_t(at)); }, of_node, to_node, graphs, any<void*>({OF(device), OF(nullptr), OF(pageable)}));
    auto execs = any<hipGraphExec_t>({OF(exec), OF(nullptr)});
    auto copy_nodes = any<hipGraphNode_t>({OF(driver_copy), OF(copy), OF(driver_set), OF(empty), OF(stranger), OF(nullptr)});
    auto set_nodes = any<hipGraphNode_t>({OF(driver_set), OF(set), OF(driver_copy), OF(empty), OF(stranger), OF(nullptr)});
    each(FUNCTION(hipDrvGraphExecMemcpyNodeSetParams), nothing, execs, copy_nodes, copy_parameters, contexts);
    each(FUNCTION(hipDrvGraphExecMemsetNodeSetParams), nothing, execs, set_nodes, set_parameters, contexts);
    static HIP_MEMCPY3D got;
    each("hipDrvGraphMemcpyNodeGetParams", [](hipGraphNode_t of, HIP_MEMCPY3D* to) { return got = {}, hipDrvGraphMemcpyNodeGetParams(of, to); }, [] { note("width", got.WidthInBytes); note("source", int(got.srcMemoryType)); note("target", int(got.dstMemoryType)); note("pitch", got.srcPitch); note("depth", got.Depth); }, copy_nodes, any<HIP_MEMCPY3D*>({OF(&got), OF(nullptr)}));
    each(FUNCTION(hipDrvGraphMemcpyNodeSetParams), nothing, copy_nodes, copy_parameters);

    auto kinds = any<hipMemcpyKind>({OF(hipMemcpyDefault), OF(hipMemcpyHostToDevice), OF(hipMemcpyDeviceToHost), OF(hipMemcpyDeviceToDevice), OF(hipMemcpyHostToHost), {"9", hipMemcpyKind(9)}});
    auto symbols = any<const void*>({{"symbol", &symbol}, OF(pageable), OF(nullptr)});
    auto sizes = any<size_t>({OF(64), OF(0), OF(257)});
    auto offsets = any<size_t>({OF(0), OF(200)});
    static hipGraphNode_t to_symbol, from_symbol;
    static hipGraph_t symbols_graph;
    static hipGraphExec_t symbols_exec;
    hipGraphCreate(&symbols_graph, 0);
    hipGraphAddMemcpyNodeToSymbol(&to_symbol, symbols_graph, nullptr, 0, &symbol, device, 64, 0, hipMemcpyDeviceToDevice);
    hipGraphAddMemcpyNodeFromSymbol(&from_symbol, symbols_graph, nullptr, 0, device, &symbol, 64, 0, hipMemcpyDeviceToDevice);
    hipGraphInstantiate(&symbols_exec, symbols_graph, nullptr, nullptr, 0);
    auto symbol_nodes = any<hipGraphNode_t>({OF(to_symbol), OF(from_symbol), OF(copy), OF(set), OF(empty), OF(nullptr)});
    auto from_nodes = any<hipGraphNode_t>({OF(from_symbol), OF(to_symbol), OF(copy), OF(set), OF(empty), OF(nullptr)});
    auto symbol_execs = any<hipGraphExec_t>({OF(symbols_exec), OF(exec), OF(nullptr)});
    auto memory = any<void*>({OF(device), OF(pinned), OF(pageable), OF(nullptr)});
    auto sources = any<const void*>({OF(device), OF(pinned), OF(pageable), OF(nullptr)});
    each(FUNCTION(hipGraphMemcpyNodeSetParamsToSymbol), nothing, symbol_nodes, symbols, sources, sizes, offsets, kinds);
    each(FUNCTION(hipGraphMemcpyNodeSetParamsFromSymbol), nothing, from_nodes, memory, symbols, sizes, offsets, kinds);
    each(FUNCTION(hipGraphExecMemcpyNodeSetParamsToSymbol), nothing, symbol_execs, symbol_nodes, symbols, sources, sizes, offsets, kinds);
    each(FUNCTION(hipGraphExecMemcpyNodeSetParamsFromSymbol), nothing, symbol_execs, from_nodes, memory, symbols, sizes, offsets, kinds);

    auto batch_parameters = any<hipBatchMemOpNodeParams*>({OF(batches), {"none", batches + 1}, {"null array", batches + 2}, {"flags 1", batches + 3}, {"257", batches + 4}, {"operation 99", batches + 5}, {"nowhere", batches + 6}, {"no context", batches + 7}, OF(nullptr)});
    auto batch_nodes = any<hipGraphNode_t>({OF(batch), OF(set), OF(empty), OF(stranger), OF(nullptr)});
    each("hipGraphAddBatchMemOpNode", [](hipGraphNode_t* to, hipGraph_t of, const hipGraphNode_t* behind, size_t number, hipBatchMemOpNodeParams* with) { return hipGraphAddBatchMemOpNode(to, of, behind, number, with); }, of_node, to_node, graphs, dependencies, numbers, batch_parameters);
    static hipBatchMemOpNodeParams got_batch;
    each("hipGraphBatchMemOpNodeGetParams", [](hipGraphNode_t of, hipBatchMemOpNodeParams* to) { return got_batch = {}, hipGraphBatchMemOpNodeGetParams(of, to); }, [] { note("count", got_batch.count); note("flags", got_batch.flags); note("operation", got_batch.paramArray == nullptr ? -1 : int(got_batch.paramArray[0].operation)); }, batch_nodes, any<hipBatchMemOpNodeParams*>({OF(&got_batch), OF(nullptr)}));
    each(FUNCTION(hipGraphBatchMemOpNodeSetParams), nothing, batch_nodes, batch_parameters);
    each("hipGraphExecBatchMemOpNodeSetParams", [](hipGraphExec_t of, hipGraphNode_t node, hipBatchMemOpNodeParams* with) { return hipGraphExecBatchMemOpNodeSetParams(of, node, with); }, nothing, execs, batch_nodes, batch_parameters);
    each("hipStreamBatchMemOp", [](hipStream_t on, unsigned number, hipStreamBatchMemOpParams* with, unsigned flags) { return hipStreamBatchMemOp(on, number, with, flags); }, settle, any<hipStream_t>({OF(stream), OF(nullptr), OF(hipStreamPerThread)}), any<unsigned>({OF(2), OF(1), OF(0), OF(257)}), any<hipStreamBatchMemOpParams*>({OF(operations), OF(nullptr)}), any<unsigned>({OF(0), OF(1)}));
    each("hipStreamBatchMemOp", [](hipStreamBatchMemOpParams* with) { return hipStreamBatchMemOp(nullptr, 1, with, 0); }, settle, any<hipStreamBatchMemOpParams*>({OF(operations), {"operation 99", operations + 2}, {"nowhere", operations + 3}}));

    // Graph memory: the node goes with its graph.
    each("hipGraphAddMemAllocNode", [](hipGraphNode_t* to, bool has_graph, const hipGraphNode_t* behind, size_t number, int of) {
        static hipGraph_t one_own;
        hipGraphCreate(&one_own, 0);
        hipMemAllocNodeParams with = allocations[of < 0 ? 0 : of];
        const hipError_t error = hipGraphAddMemAllocNode(to, has_graph ? one_own : nullptr, behind, number, of < 0 ? nullptr : &with);
        if (error == hipSuccess) note("memory", with.dptr != nullptr);
        hipGraphDestroy(one_own);
        return error;
    }, nothing, to_node, any<bool>({OF(true), OF(false)}), any<const hipGraphNode_t*>({OF(nullptr), OF(dependency)}), any<size_t>({OF(0), OF(1)}), any<int>({{"4096", 0}, {"null", -1}, {"0", 1}, {"kind 9", 2}, {"no place", 3}, {"device 1", 4}, {"access", 5}, {"null access", 6}, {"2^50", 7}}));
    static hipGraph_t memory_graph;
    hipGraphCreate(&memory_graph, 0);
    hipGraphAddMemAllocNode(&allocation, memory_graph, nullptr, 0, allocations);
    static void* graph_memory;
    graph_memory = allocations[0].dptr;
    hipGraphAddMemFreeNode(&release, memory_graph, &allocation, 1, graph_memory);
    static hipMemAllocNodeParams got_allocation;
    auto memory_nodes = any<hipGraphNode_t>({OF(allocation), OF(release), OF(set), OF(nullptr)});
    each("hipGraphMemAllocNodeGetParams", [](hipGraphNode_t of, hipMemAllocNodeParams* to) { return got_allocation = {}, hipGraphMemAllocNodeGetParams(of, to); }, [] { note("size", got_allocation.bytesize); note("same", got_allocation.dptr == graph_memory); }, memory_nodes, any<hipMemAllocNodeParams*>({OF(&got_allocation), OF(nullptr)}));
    each("hipGraphMemFreeNodeGetParams", [](hipGraphNode_t of, void* to) { return hipGraphMemFreeNodeGetParams(of, to); }, [] { note("same", results.pointer == graph_memory); results.pointer = nullptr; }, any<hipGraphNode_t>({OF(release), OF(allocation), OF(set), OF(nullptr)}), any<void*>({OF(&r.pointer), OF(nullptr)}));
    ONE(hipGraphAddMemFreeNode(&r.node, memory_graph, nullptr, 0, graph_memory), nothing);
    ONE(hipGraphAddMemAllocNode(&r.node, memory_graph, nullptr, 0, allocations), nothing);
    ONE(hipGraphClone(&r.graph, memory_graph), nothing);
    ONE(hipGraphDestroyNode(allocation), nothing);
    ONE(hipGraphInstantiate(&r.exec, memory_graph, nullptr, nullptr, 0), [] { note("destroy", int(hipGraphExecDestroy(results.exec))); });
    ONE(hipGraphInstantiateWithFlags(&r.exec, memory_graph, hipGraphInstantiateFlagAutoFreeOnLaunch), [] { note("destroy", int(hipGraphExecDestroy(results.exec))); });

    // Nodes of any kind, and their parameters.
    static char room[12 * sizeof(hipGraphNodeParams)];
    const auto any_node = reinterpret_cast<hipGraphNodeParams*>(room);
    any_node[0].type = hipGraphNodeTypeKernel, any_node[0].kernel = kernels[0];
    any_node[1].type = hipGraphNodeTypeMemset, any_node[1].memset = sets[0];
    any_node[2].type = hipGraphNodeTypeEmpty;
    any_node[3].type = hipGraphNodeTypeMemcpy;
    any_node[3].memcpy.copyParams.srcPtr = {device, 64, 64, 1}, any_node[3].memcpy.copyParams.dstPtr = {second, 64, 64, 1}, any_node[3].memcpy.copyParams.extent = {64, 1, 1}, any_node[3].memcpy.copyParams.kind = hipMemcpyDeviceToDevice;
    any_node[4].type = hipGraphNodeTypeHost, any_node[4].host.fn = [](void*) {};
    any_node[5].type = hipGraphNodeTypeGraph, any_node[5].graph.graph = other_graph;
    static hipEvent_t event;
    hipEventCreate(&event);
    any_node[6].type = hipGraphNodeTypeEventRecord, any_node[6].eventRecord.event = event;
    any_node[7].type = hipGraphNodeTypeWaitEvent, any_node[7].eventWait.event = event;
    any_node[8].type = hipGraphNodeType(99);
    any_node[9].type = hipGraphNodeTypeKernel;
    any_node[10].type = hipGraphNodeTypeHost;
    any_node[11].type = hipGraphNodeTypeMemFree, any_node[11].free.dptr = device;
    auto any_parameters = any<hipGraphNodeParams*>({{"kernel", any_node}, {"set", any_node + 1}, {"empty", any_node + 2}, {"copy", any_node + 3}, {"host", any_node + 4}, {"child", any_node + 5}, {"record", any_node + 6}, {"wait", any_node + 7}, {"99", any_node + 8}, {"no kernel", any_node + 9}, {"no host function", any_node + 10}, {"free", any_node + 11}, OF(nullptr)});
    each("hipGraphAddNode", [](hipGraphNode_t* to, hipGraph_t of, const hipGraphNode_t* behind, size_t number, hipGraphNodeParams* with) { return hipGraphAddNode(to, of, behind, number, with); }, of_node, to_node, graphs, dependencies, numbers, any_parameters);
    auto nodes = any<hipGraphNode_t>({OF(of_kernel), OF(set), OF(copy), OF(empty), OF(batch), OF(stranger), OF(nullptr)});
    each(FUNCTION(hipGraphNodeSetParams), nothing, nodes, any_parameters);
    each(FUNCTION(hipGraphExecNodeSetParams), nothing, execs, nodes, any_parameters);

    static hipKernelNodeAttrValue value;
    auto ids = any<hipKernelNodeAttrID>({OF(hipKernelNodeAttributePriority), OF(hipKernelNodeAttributeCooperative), OF(hipKernelNodeAttributeAccessPolicyWindow), {"4", hipKernelNodeAttrID(4)}, {"0", hipKernelNodeAttrID(0)}, {"99", hipKernelNodeAttrID(99)}});
    auto kernel_nodes = any<hipGraphNode_t>({OF(of_kernel), OF(second_kernel), OF(set), OF(nullptr)});
    auto values = any<hipKernelNodeAttrValue*>({OF(&value), OF(nullptr)});
    for (int priority : {0, -1, 1, 9}) {
        value = {};
        value.priority = priority;
        each(("hipGraphKernelNodeSetAttribute " + std::to_string(priority)).c_str(), [](hipGraphNode_t of, hipKernelNodeAttrID id, const hipKernelNodeAttrValue* to) { return hipGraphKernelNodeSetAttribute(of, id, to); }, nothing, kernel_nodes, ids, any<const hipKernelNodeAttrValue*>({OF(&value), OF(nullptr)}));
        each("hipGraphKernelNodeGetAttribute", [](hipGraphNode_t of, hipKernelNodeAttrID id, hipKernelNodeAttrValue* to) { return value = {}, hipGraphKernelNodeGetAttribute(of, id, to); }, [] { note("priority", value.priority); }, kernel_nodes, ids, values);
    }
    each(FUNCTION(hipGraphKernelNodeCopyAttributes), nothing, kernel_nodes, any<hipGraphNode_t>({OF(second_kernel), OF(of_kernel), OF(set), OF(nullptr)}));

    static hipGraphInstantiateParams instance;
    each("hipGraphInstantiateWithParams", [](hipGraphExec_t* to, hipGraph_t of, bool is_null, unsigned long long flags, hipStream_t upload) {
        instance = {};
        instance.flags = flags, instance.uploadStream = upload;
        return hipGraphInstantiateWithParams(to, of, is_null ? nullptr : &instance);
    }, [] { note("result", int(instance.result_out)); hipGraphExecDestroy(results.exec); }, any<hipGraphExec_t*>({OF(&r.exec), OF(nullptr)}), any<hipGraph_t>({OF(graph), OF(memory_graph), OF(nullptr)}), any<bool>({OF(false), OF(true)}), any<unsigned long long>({OF(0), OF(1), OF(2), OF(4), OF(8), OF(16), OF(99)}), any<hipStream_t>({OF(nullptr), OF(stream)}));

    static hipStream_t captured;
    static size_t known;
    each("hipStreamBeginCaptureToGraph", [](hipStream_t on, hipGraph_t to, const hipGraphNode_t* behind, size_t number, hipStreamCaptureMode mode) {
        captured = on;
        hipGraphGetNodes(graph, nullptr, &known);
        return hipStreamBeginCaptureToGraph(on, to, behind, nullptr, number, mode);
    }, [] {
        note("set", int(hipMemsetAsync(device, 1, 64, captured)));
        note("end", int(hipStreamEndCapture(captured, &results.graph)));
        note("same", results.graph == graph);
        size_t number = 0;
        hipGraphGetNodes(graph, nullptr, &number);
        note("nodes", number - known);
    }, any<hipStream_t>({OF(stream), OF(nullptr), OF(hipStreamPerThread)}), graphs, dependencies, numbers, any<hipStreamCaptureMode>({OF(hipStreamCaptureModeGlobal), OF(hipStreamCaptureModeRelaxed), {"9", hipStreamCaptureMode(9)}}));
    return 0;
}
