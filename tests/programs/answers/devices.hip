// Two devices: what belongs to one of them, used while the other is current, and from the other's streams.
#include "../answers.h"

#include <hip/hip_ext.h>

using namespace answers;

__global__ void kernel(int* out) {
    if (out != nullptr) out[threadIdx.x] = 1;
}
__device__ int symbol[64];

int main(int count, char** arguments) {
    begin(count, arguments);
    Results& r = results;
    static char pageable[4096];
    static char *device[2], *pinned[2], *managed[2], *pooled[2];
    static hipStream_t stream[2];
    static hipEvent_t event[2], recorded[2];
    static hipMemPool_t pool[2];
    static hipCtx_t context[2];
    for (int of : {1, 0}) {
        hipSetDevice(of);
        hipMalloc(&device[of], 4096);
        hipHostMalloc(&pinned[of], 4096);
        hipMallocManaged(&managed[of], 4096);
        hipStreamCreate(&stream[of]);
        hipEventCreate(&event[of]);
        hipEventCreate(&recorded[of]);
        hipEventRecord(recorded[of], stream[of]);
        hipDeviceGetDefaultMemPool(&pool[of], of);
        hipMallocAsync(reinterpret_cast<void**>(&pooled[of]), 4096, stream[of]);
        hipDeviceSynchronize();
        hipDevicePrimaryCtxRetain(&context[of], of);
    }
    auto devices = any<int>({OF(0), OF(1), OF(2), OF(-1)});
    auto current = any<int>({OF(0), OF(1)});
    auto streams = any<hipStream_t>({{"stream 0", stream[0]}, {"stream 1", stream[1]}, OF(nullptr), OF(hipStreamPerThread)});
    auto events = any<hipEvent_t>({{"event 0", event[0]}, {"event 1", event[1]}, {"recorded 0", recorded[0]}, {"recorded 1", recorded[1]}});
    auto memory = any<void*>({{"device 0", device[0]}, {"device 1", device[1]}, {"pinned 0", pinned[0]}, {"pinned 1", pinned[1]}, {"managed 0", managed[0]}, {"managed 1", managed[1]}, {"pooled 0", pooled[0]}, {"pooled 1", pooled[1]}, OF(pageable)});
    // Another device has no access to pooled memory: kernels would fault.
    auto reached = any<void*>({{"device 0", device[0]}, {"device 1", device[1]}, {"pinned 0", pinned[0]}, {"pinned 1", pinned[1]}, {"managed 0", managed[0]}, {"managed 1", managed[1]}, OF(pageable)});
    auto kinds = any<hipMemcpyKind>({OF(hipMemcpyDefault), OF(hipMemcpyDeviceToDevice), OF(hipMemcpyHostToDevice), OF(hipMemcpyDeviceToHost)});
    // What a call finds out about one thing, while a device is current.
    auto set = [](int to) { hipSetDevice(to); };

    each(FUNCTION(hipGetDeviceCount), nothing, any<int*>({OF(&r.number)}));
    each(FUNCTION(hipSetDevice), [] { note("now", (hipGetDevice(&results.number), results.number)); }, devices);
    hipSetDevice(0);
    each(FUNCTION(hipDeviceGet), nothing, any<int*>({OF(&r.number)}), devices);
    each(FUNCTION(hipDeviceComputeCapability), nothing, any<int*>({OF(&r.number)}), any<int*>({OF(&r.other)}), devices);
    each(FUNCTION(hipDeviceGetAttribute), nothing, any<int*>({OF(&r.number)}), any<hipDeviceAttribute_t>({OF(hipDeviceAttributeWarpSize), OF(hipDeviceAttributePciBusId), OF(hipDeviceAttributeIsMultiGpuBoard), OF(hipDeviceAttributeManagedMemory), OF(hipDeviceAttributeConcurrentManagedAccess), OF(hipDeviceAttributeCooperativeMultiDeviceLaunch)}), devices);
    static char bus[2][32];
    hipDeviceGetPCIBusId(bus[0], 32, 0);
    hipDeviceGetPCIBusId(bus[1], 32, 1);
    ONE(hipDeviceGetByPCIBusId(&r.number, bus[0]), nothing);
    ONE(hipDeviceGetByPCIBusId(&r.number, bus[1]), nothing);
    static hipUUID uuids[2];
    ONE(hipDeviceGetUuid(&uuids[0], 0), nothing);
    ONE(hipDeviceGetUuid(&uuids[1], 1), [] { note("same", memcmp(&uuids[0], &uuids[1], sizeof uuids[0]) == 0); });
    auto attributes = any<hipDeviceP2PAttr>({OF(hipDevP2PAttrAccessSupported), OF(hipDevP2PAttrPerformanceRank), OF(hipDevP2PAttrNativeAtomicSupported), OF(hipDevP2PAttrHipArrayAccessSupported)});
    each(FUNCTION(hipDeviceCanAccessPeer), nothing, any<int*>({OF(&r.number), OF(nullptr)}), devices, devices);
    each(FUNCTION(hipDeviceGetP2PAttribute), nothing, any<int*>({OF(&r.number), OF(nullptr)}), attributes, devices, devices);
    each(FUNCTION(hipExtGetLinkTypeAndHopCount), nothing, devices, devices, any<uint32_t*>({OF(&r.flags)}), any<uint32_t*>({{"&r.number", reinterpret_cast<uint32_t*>(&r.number)}}));
    others_max = 3;
    each("hipDeviceEnablePeerAccess", [=](int on, int to, unsigned flags) { return set(on), hipDeviceEnablePeerAccess(to, flags); }, [] { }, current, devices, any<unsigned>({OF(0), OF(1)}));
    each("hipDeviceEnablePeerAccess again", [=](int on, int to) { return set(on), hipDeviceEnablePeerAccess(to, 0); }, nothing, current, devices);
    each("hipDeviceDisablePeerAccess", [=](int on, int to) { return set(on), hipDeviceDisablePeerAccess(to); }, nothing, current, devices);
    each("hipDeviceDisablePeerAccess again", [=](int on, int to) { return set(on), hipDeviceDisablePeerAccess(to); }, nothing, current, devices);
    others_max = 2;

    each("hipDevicePrimaryCtxGetState", [](int of, unsigned* flags, int* state) { return hipDevicePrimaryCtxGetState(of, flags, state); }, nothing, devices, any<unsigned*>({OF(&r.flags)}), any<int*>({OF(&r.number)}));
    each("hipCtxSetCurrent", [](int to) { return hipCtxSetCurrent(context[to]); }, [] { note("now", (hipGetDevice(&results.number), results.number)); }, current);
    each("hipCtxPushCurrent", [](int to) { return hipCtxPushCurrent(context[to]); }, [] {
        note("now", (hipGetDevice(&results.number), results.number));
        note("pop", int(hipCtxPopCurrent(&results.context)));
        note("now", (hipGetDevice(&results.number), results.number));
    }, any<int>({OF(1), OF(0), OF(1)}));
    each("hipCtxGetDevice", [=](int on) { return set(on), hipCtxGetDevice(&results.number); }, nothing, current);
    hipSetDevice(0);

    // Memory.
    each("hipPointerGetAttributes", [=](int on, void* of) {
        static hipPointerAttribute_t got;
        got = {};
        set(on);
        const hipError_t error = hipPointerGetAttributes(&got, of);
        if (error == hipSuccess) note("device", got.device), note("type", int(got.type)), note("managed", got.isManaged), note("host", got.hostPointer != nullptr), note("address", got.devicePointer != nullptr);
        return error;
    }, nothing, current, memory);
    each("hipPointerGetAttribute ordinal", [=](int on, void* of) { return set(on), hipPointerGetAttribute(&results.number, HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, hipDeviceptr_t(of)); }, nothing, current, memory);
    each("hipMemGetAddressRange", [=](int on, void* of) { return set(on), hipMemGetAddressRange(reinterpret_cast<hipDeviceptr_t*>(&results.pointer), &results.size, hipDeviceptr_t(of)); }, nothing, current, memory);
    each("hipHostGetDevicePointer", [=](int on, void* of) { return set(on), hipHostGetDevicePointer(&results.pointer, of, 0); }, [] { }, current, reached);
    each("hipMemset", [=](int on, void* of) { return set(on), hipMemset(of, 1, 64); }, settle, current, reached);
    each("hipMemsetAsync", [=](int on, void* of, hipStream_t with) { return set(on), hipMemsetAsync(of, 1, 64, with); }, settle, current, reached, streams);
    each("hipMemcpy", [=](int on, void* to, void* from, hipMemcpyKind kind) { return set(on), hipMemcpy(to, from, 64, kind); }, settle, current, reached, reached, kinds);
    each("hipMemcpyAsync", [=](int on, void* to, void* from, hipStream_t with) { return set(on), hipMemcpyAsync(to, from, 64, hipMemcpyDefault, with); }, settle, current, reached, reached, streams);
    each("hipMemcpyDtoD", [=](int on, void* to, void* from) { return set(on), hipMemcpyDtoD(hipDeviceptr_t(to), hipDeviceptr_t(from), 64); }, settle, current, reached, reached);
    hipSetDevice(0);
    each(FUNCTION(hipMemcpyPeer), settle, reached, devices, any<const void*>({{"device 1", device[1]}, {"device 0", device[0]}, {"pinned 0", pinned[0]}, {"managed 1", managed[1]}, OF(pageable), OF(nullptr)}), any<int>({OF(1), OF(0), OF(2), OF(-1)}), any<size_t>({OF(64), OF(0), OF(4097)}));
    each("hipMemcpyPeerAsync", [](void* to, int at, const void* from, int of, size_t size, hipStream_t with) { return hipMemcpyPeerAsync(to, at, from, of, size, with); }, settle, reached, devices, any<const void*>({{"device 1", device[1]}, {"device 0", device[0]}, OF(pageable), OF(nullptr)}), any<int>({OF(1), OF(0), OF(2), OF(-1)}), any<size_t>({OF(64), OF(0), OF(4097)}), streams);
    static hipMemcpy3DParms deep;
    each("hipMemcpy3DAsync", [=](int on, void* to, void* from, hipStream_t with) {
        set(on);
        deep = {};
        deep.dstPtr = {to, 64, 64, 2}, deep.srcPtr = {from, 64, 64, 2}, deep.extent = {64, 2, 1}, deep.kind = hipMemcpyDefault;
        return hipMemcpy3DAsync(&deep, with);
    }, settle, current, reached, reached, streams);
    each("hipMemcpyToSymbol", [=](int on, void* from) { return set(on), hipMemcpyToSymbol(HIP_SYMBOL(symbol), from, 64, 0, hipMemcpyDefault); }, settle, current, reached);
    each("hipMemcpyFromSymbolAsync", [=](int on, void* to, hipStream_t with) { return set(on), hipMemcpyFromSymbolAsync(to, HIP_SYMBOL(symbol), 64, 0, hipMemcpyDefault, with); }, settle, current, reached, streams);
    static void* of_symbol[2];
    for (int of : {1, 0}) {
        set(of);
        hipGetSymbolAddress(&of_symbol[of], HIP_SYMBOL(symbol));
    }
    each("hipGetSymbolAddress", [=](int on) { return set(on), hipGetSymbolAddress(&results.pointer, HIP_SYMBOL(symbol)); }, [] { note("is", results.pointer == of_symbol[0] ? 0 : results.pointer == of_symbol[1] ? 1 : 2); }, current);
    each("hipMemPrefetchAsync", [=](int on, void* of, int to, hipStream_t with) { return set(on), hipMemPrefetchAsync(of, 4096, to, with); }, settle, current, reached, any<int>({OF(0), OF(1), OF(2), OF(-1), OF(-2)}), streams);
    each("hipMemAdvise", [=](int on, void* of, hipMemoryAdvise advice, int to) { return set(on), hipMemAdvise(of, 4096, advice, to); }, nothing, current, any<void*>({{"managed 0", managed[0]}, {"managed 1", managed[1]}, {"device 1", device[1]}}), any<hipMemoryAdvise>({OF(hipMemAdviseSetReadMostly), OF(hipMemAdviseSetPreferredLocation), OF(hipMemAdviseSetAccessedBy), OF(hipMemAdviseUnsetAccessedBy), OF(hipMemAdviseUnsetPreferredLocation)}), any<int>({OF(0), OF(1), OF(2), OF(-1)}));
    each("hipMemRangeGetAttribute", [=](int on, void* of, hipMemRangeAttribute which) { return set(on), hipMemRangeGetAttribute(&results.number, 4, which, of, 4096); }, nothing, current, any<void*>({{"managed 0", managed[0]}, {"managed 1", managed[1]}}), any<hipMemRangeAttribute>({OF(hipMemRangeAttributeReadMostly), OF(hipMemRangeAttributePreferredLocation), OF(hipMemRangeAttributeLastPrefetchLocation)}));
    hipSetDevice(0);

    // Streams and events.
    each("hipStreamGetDevice", [=](int on, hipStream_t of) { return set(on), hipStreamGetDevice(of, &results.number); }, nothing, current, streams);
    each("hipStreamQuery", [=](int on, hipStream_t of) { return set(on), hipStreamQuery(of); }, nothing, current, streams);
    each("hipStreamSynchronize", [=](int on, hipStream_t of) { return set(on), hipStreamSynchronize(of); }, nothing, current, streams);
    each("hipStreamWaitEvent", [=](int on, hipStream_t with, hipEvent_t of) { return set(on), hipStreamWaitEvent(with, of, 0); }, settle, current, streams, events);
    each("hipEventRecord", [=](int on, int of, hipStream_t with) {
        set(on);
        hipEvent_t fresh;
        hipEventCreate(&fresh);
        set(of);
        const hipError_t error = hipEventRecord(fresh, with);
        note("wait", int(hipEventSynchronize(fresh)));
        hipEventDestroy(fresh);
        return error;
    }, settle, current, current, streams);
    each("hipEventRecord of two", [=](hipEvent_t of, hipStream_t with) { return set(0), hipEventRecord(of, with); }, settle, events, streams);
    each("hipEventElapsedTime", [=](int on, hipEvent_t from, hipEvent_t to) { return set(on), hipEventElapsedTime(&results.time_ms, from, to); }, nothing, current, events, events);
    each("hipLaunchHostFunc", [=](int on, hipStream_t with) { return set(on), hipLaunchHostFunc(with, [](void*) {}, nullptr); }, settle, current, streams);
    each("hipStreamWriteValue32", [=](int on, hipStream_t with, void* of) { return set(on), hipStreamWriteValue32(with, of, 1, 0); }, settle, current, streams, reached);
    each("hipStreamWaitValue32", [=](int on, hipStream_t with, void* of) { return set(on), hipMemset(of, 0, 4), hipDeviceSynchronize(), hipStreamWaitValue32(with, of, 0, hipStreamWaitValueEq, ~0u); }, settle, current, streams, reached);
    each("hipStreamAttachMemAsync", [=](int on, hipStream_t with, void* of) { return set(on), hipStreamAttachMemAsync(with, of, 0, hipMemAttachSingle); }, settle, current, streams, reached);
    hipSetDevice(0);

    // Kernels.
    static int* nowhere = nullptr;
    static void* parameters[] = {&nowhere};
    each("hipLaunchKernel", [=](int on, hipStream_t with) { return set(on), hipLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(64), parameters, 0, with); }, settle, current, streams);
    static hipFunction_t function[2];
    for (int of : {1, 0}) {
        set(of);
        hipGetFuncBySymbol(&function[of], reinterpret_cast<const void*>(kernel));
    }
    each("hipGetFuncBySymbol", [=](int on) { return set(on), hipGetFuncBySymbol(&results.function, reinterpret_cast<const void*>(kernel)); }, [=] { note("is", results.function == function[0] ? 0 : results.function == function[1] ? 1 : 2); }, current);
    each("hipModuleLaunchKernel", [=](int on, int of, hipStream_t with) { return set(on), hipModuleLaunchKernel(function[of], 1, 1, 1, 64, 1, 1, 0, with, parameters, nullptr); }, settle, current, current, streams);
    each("hipModuleLaunchCooperativeKernel", [=](int on, int of, hipStream_t with) { return set(on), hipModuleLaunchCooperativeKernel(function[of], 1, 1, 1, 64, 1, 1, 0, with, parameters); }, settle, current, current, streams);
    each("hipExtModuleLaunchKernel", [=](int on, int of, hipStream_t with) { return set(on), hipExtModuleLaunchKernel(function[of], 64, 1, 1, 64, 1, 1, 0, with, parameters, nullptr, nullptr, nullptr, 0); }, settle, current, current, streams);
    each("hipFuncGetAttribute", [=](int on, int of) { return set(on), hipFuncGetAttribute(&results.number, HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function[of]); }, nothing, current, current);
    hipSetDevice(0);
    static hipLaunchParams launches[4];
    for (int of = 0; of < 4; ++of) launches[of] = {reinterpret_cast<void*>(kernel), dim3(1), dim3(64), parameters, 0, stream[of % 2]};
    static hipFunctionLaunchParams function_launches[2];
    for (int of = 0; of < 2; ++of) function_launches[of] = {function[of], 1, 1, 1, 64, 1, 1, 0, stream[of], parameters};
    launches[3].stream = nullptr;
    auto lists = any<hipLaunchParams*>({OF(launches), {"one device twice", nullptr}, {"null stream", launches + 2}});
    static hipLaunchParams twice[2] = {launches[0], launches[2]};
    static hipLaunchParams sizes[2] = {launches[0], launches[1]};
    sizes[1].gridDim = dim3(2);
    static hipLaunchParams empty[2] = {launches[0], launches[1]};
    empty[1].blockDim = dim3(0);
    lists = any<hipLaunchParams*>({OF(launches), OF(twice), {"null stream", launches + 2}, OF(sizes), OF(empty), OF(nullptr)});
    auto numbers = any<int>({OF(2), OF(1), OF(0), OF(3), OF(-1)});
    auto flags = any<unsigned>({OF(0), OF(1), OF(2), OF(3), OF(4)});
    each("hipLaunchCooperativeKernelMultiDevice", [](hipLaunchParams* of, int number, unsigned how) { return hipLaunchCooperativeKernelMultiDevice(of, number, how); }, settle, lists, numbers, flags);
    each("hipExtLaunchMultiKernelMultiDevice", [](hipLaunchParams* of, int number, unsigned how) { return hipExtLaunchMultiKernelMultiDevice(of, number, how); }, settle, lists, numbers, flags);
    each("hipModuleLaunchCooperativeKernelMultiDevice", [](hipFunctionLaunchParams* of, unsigned number, unsigned how) { return hipModuleLaunchCooperativeKernelMultiDevice(of, number, how); }, settle, any<hipFunctionLaunchParams*>({OF(function_launches), OF(nullptr)}), any<unsigned>({OF(2), OF(1), OF(0), OF(3)}), flags);

    // Pools.
    auto pools = any<hipMemPool_t>({{"pool 0", pool[0]}, {"pool 1", pool[1]}});
    each("hipDeviceGetDefaultMemPool", [](int of) { return hipDeviceGetDefaultMemPool(&results.pool, of); }, [] { results.pool == pool[0] ? note("is", 0) : note("is", results.pool == pool[1] ? 1 : 2); }, devices);
    each("hipDeviceGetMemPool", [](int of) { return hipDeviceGetMemPool(&results.pool, of); }, [] { results.pool == pool[0] ? note("is", 0) : note("is", results.pool == pool[1] ? 1 : 2); }, devices);
    each("hipDeviceSetMemPool", [](int of, hipMemPool_t to) { return hipDeviceSetMemPool(of, to); }, nothing, devices, pools);
    hipDeviceSetMemPool(0, pool[0]);
    hipDeviceSetMemPool(1, pool[1]);
    auto of_pointer = [] {
        static hipPointerAttribute_t got;
        got = {};
        note("attributes", int(hipPointerGetAttributes(&got, results.pointer)));
        note("device", got.device);
        note("free", int(hipFree(results.pointer)));
    };
    each("hipMallocAsync", [=](int on, hipStream_t with) { return set(on), hipMallocAsync(&results.pointer, 4096, with); }, of_pointer, current, streams);
    each("hipMallocFromPoolAsync", [=](int on, hipMemPool_t from, hipStream_t with) { return set(on), hipMallocFromPoolAsync(&results.pointer, 4096, from, with); }, of_pointer, current, pools, streams);
    each("hipFreeAsync", [=](int on, int of, hipStream_t with) {
        void* some = nullptr;
        hipMallocAsync(&some, 4096, stream[of]);
        set(on);
        const hipError_t error = hipFreeAsync(some, with);
        if (error != hipSuccess) note("free", int(hipFree(some)));
        return error;
    }, settle, current, current, streams);
    each("hipFree", [=](int on, int of) {
        void* some = nullptr;
        set(of);
        hipMalloc(&some, 4096);
        set(on);
        return hipFree(some);
    }, settle, current, current);
    static hipMemAccessDesc reach[2];
    each("hipMemPoolSetAccess", [](hipMemPool_t of, int kind, int to, int how, size_t number) {
        reach[0].location = {hipMemLocationType(kind), to}, reach[0].flags = hipMemAccessFlags(how);
        return hipMemPoolSetAccess(of, reach, number);
    }, nothing, pools, any<int>({OF(hipMemLocationTypeDevice), OF(hipMemLocationTypeInvalid)}), any<int>({OF(1), OF(0), OF(2), OF(-1)}), any<int>({OF(hipMemAccessFlagsProtReadWrite), OF(hipMemAccessFlagsProtRead), OF(hipMemAccessFlagsProtNone), OF(2)}), any<size_t>({OF(1), OF(0)}));
    each("hipMemPoolGetAccess", [](hipMemPool_t of, int kind, int to) {
        static hipMemLocation where;
        where = {hipMemLocationType(kind), to};
        return hipMemPoolGetAccess(reinterpret_cast<hipMemAccessFlags*>(&results.number), of, &where);
    }, nothing, pools, any<int>({OF(hipMemLocationTypeDevice), OF(hipMemLocationTypeInvalid)}), any<int>({OF(0), OF(1), OF(2), OF(-1)}));
    each("hipMemPoolCreate", [](int of) {
        static hipMemPoolProps properties;
        properties = {};
        properties.allocType = hipMemAllocationTypePinned, properties.location = {hipMemLocationTypeDevice, of};
        return hipMemPoolCreate(&results.pool, &properties);
    }, [=] { note("destroy", int(hipMemPoolDestroy(results.pool))); }, devices);

    // Virtual memory.
    static hipMemAllocationProp properties{};
    properties.type = hipMemAllocationTypePinned, properties.location.type = hipMemLocationTypeDevice;
    static size_t granularity;
    hipMemGetAllocationGranularity(&granularity, &properties, hipMemAllocationGranularityMinimum);
    each("hipMemGetAllocationGranularity", [](int of) { return properties.location.id = of, hipMemGetAllocationGranularity(&results.size, &properties, hipMemAllocationGranularityMinimum); }, nothing, devices);
    static void* range;
    each("hipMemSetAccess", [=](int on, int of, int kind, int to, int how) {
        set(on);
        properties.location.id = of;
        hipMemGenericAllocationHandle_t physical = nullptr;
        note("create", int(hipMemCreate(&physical, granularity, &properties, 0)));
        note("reserve", int(hipMemAddressReserve(&range, granularity, 0, nullptr, 0)));
        note("map", int(hipMemMap(range, granularity, 0, physical, 0)));
        hipMemAccessDesc to_whom{};
        to_whom.location = {hipMemLocationType(kind), to}, to_whom.flags = hipMemAccessFlags(how);
        const hipError_t error = hipMemSetAccess(range, granularity, &to_whom, 1);
        if (error == hipSuccess && how == hipMemAccessFlagsProtReadWrite && to == on && kind == hipMemLocationTypeDevice) note("set", int(hipMemset(range, 1, 64))), note("then", int(hipDeviceSynchronize()));
        unsigned long long flags = 77;
        note("get", int(hipMemGetAccess(&flags, &to_whom.location, range)));
        note("flags", int(flags));
        note("unmap", int(hipMemUnmap(range, granularity)));
        note("release", int(hipMemRelease(physical)));
        note("free", int(hipMemAddressFree(range, granularity)));
        return error;
    }, nothing, current, current, any<int>({OF(hipMemLocationTypeDevice), {"host", 2}}), any<int>({OF(0), OF(1), OF(2)}), any<int>({OF(hipMemAccessFlagsProtReadWrite), OF(hipMemAccessFlagsProtRead), OF(hipMemAccessFlagsProtNone)}));
    hipSetDevice(0);

    // Captures and graphs.
    each("capture", [=](int on, int begun, int with, int of) {
        set(begun);
        hipGraph_t graph = nullptr;
        const hipError_t error = hipStreamBeginCapture(stream[with], hipStreamCaptureModeRelaxed);
        set(on);
        note("launch", int(hipLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(64), parameters, 0, stream[with])));
        note("set", int(hipMemsetAsync(device[of], 1, 64, stream[with])));
        note("copy", int(hipMemcpyAsync(device[of], device[1 - of], 64, hipMemcpyDeviceToDevice, stream[with])));
        note("end", int(hipStreamEndCapture(stream[with], &graph)));
        hipGraphExec_t exec = nullptr;
        note("instance", int(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0)));
        for (hipStream_t to : {stream[0], stream[1]}) note("launch", int(hipGraphLaunch(exec, to))), note("wait", int(hipStreamSynchronize(to)));
        hipGraphExecDestroy(exec);
        hipGraphDestroy(graph);
        return error;
    }, nothing, current, current, current, current);
    static hipGraph_t graph;
    set(0);
    hipGraphCreate(&graph, 0);
    auto of_node = [] { note("destroy", int(hipGraphDestroyNode(results.node))); };
    each("hipGraphAddMemcpyNode1D", [=](int on, void* to, void* from, hipMemcpyKind kind) { return set(on), hipGraphAddMemcpyNode1D(&results.node, graph, nullptr, 0, to, from, 64, kind); }, of_node, current, reached, reached, kinds);
    each("hipGraphAddMemsetNode", [=](int on, void* to) {
        static hipMemsetParams with;
        set(on);
        with = {};
        with.dst = to, with.elementSize = 1, with.width = 64, with.height = 1, with.value = 1, with.pitch = 64;
        return hipGraphAddMemsetNode(&results.node, graph, nullptr, 0, &with);
    }, of_node, current, reached);
    each("hipGraphAddMemAllocNode", [=](int on, int of) {
        static hipMemAllocNodeParams with;
        set(on);
        with = {};
        with.poolProps.allocType = hipMemAllocationTypePinned, with.poolProps.location = {hipMemLocationTypeDevice, of}, with.bytesize = 4096;
        static hipGraph_t one_own;
        hipGraphCreate(&one_own, 0);
        const hipError_t error = hipGraphAddMemAllocNode(&results.node, one_own, nullptr, 0, &with);
        hipGraphDestroy(one_own);
        return error;
    }, nothing, current, devices);
    hipSetDevice(0);
    each("hipDeviceGraphMemTrim", [](int of) { return hipDeviceGraphMemTrim(of); }, nothing, devices);
    each("hipDeviceGetGraphMemAttribute", [](int of) { return hipDeviceGetGraphMemAttribute(of, hipGraphMemAttrUsedMemCurrent, &results.id); }, nothing, devices);
    each("hipDeviceReset", [=](int on) { return set(on), hipDeviceReset(); }, nothing, any<int>({OF(1), OF(0)}));
    return 0;
}
