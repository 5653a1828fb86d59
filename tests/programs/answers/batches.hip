// Functions that came late: batches of copies, sets of rows, places of memory, attributes of streams, libraries, entry points; and some that stayed behind.
#include "../answers.h"

#include <fstream>
#include <iterator>

#include <hip/hip_ext.h>

using namespace answers;

__global__ void kernel(int* out) {
    if (out != nullptr) out[threadIdx.x] = 1;
}

int main(int count, char** arguments) {
    begin(count, arguments);
    Results& r = results;
    static char pageable[8192];
    static char *device, *second, *pinned, *managed;
    hipMalloc(&device, 8192);
    hipMalloc(&second, 8192);
    hipHostMalloc(&pinned, 8192);
    hipMallocManaged(&managed, 8192);
    hipStream_t stream;
    hipStreamCreate(&stream);
    auto streams = any<hipStream_t>({OF(stream), OF(nullptr), OF(hipStreamPerThread)});
    auto memory = any<void*>({OF(device), OF(pinned), OF(managed), OF(pageable), OF(nullptr)});

    ONE(hipPeekAtLastError(), nothing);
    ONE(hipExtGetLastError(), nothing);
    ONE((hipSetDevice(99), hipPeekAtLastError()), nothing);
    ONE((hipSetDevice(99), hipExtGetLastError()), nothing);
    ONE((hipSetDevice(99), hipSetDevice(0), hipPeekAtLastError()), nothing);
    ONE(hipSuccess, [] {
        const hipChannelFormatDesc format = hipCreateChannelDesc(8, 16, 32, 64, hipChannelFormatKindFloat);
        note("x", format.x), note("w", format.w), note("kind", int(format.f));
    });
    for (uint32_t id : {0u, 1u, 100000u}) one("hipApiName " + std::to_string(id), [&] { return hipSuccess; }, [&] { note("is", hipApiName(id) != nullptr); });
    each("hipGetStreamDeviceId", [](hipStream_t of) { return note("device", hipGetStreamDeviceId(of)), hipSuccess; }, nothing, streams);
    ONE(hipSuccess, [] { note("name", hipKernelNameRefByPtr(reinterpret_cast<const void*>(kernel), nullptr)); });
    ONE(hipProfilerStart(), nothing);
    ONE(hipProfilerStop(), nothing);
    ONE(hipLaunchByPtr(reinterpret_cast<const void*>(kernel)), settle);
    each("hipConfigureCall", [](unsigned grid, unsigned block, size_t lds, hipStream_t on) {
        const hipError_t error = hipConfigureCall(dim3(grid), dim3(block), lds, on);
        static int* nowhere = nullptr;
        note("argument", int(hipSetupArgument(&nowhere, sizeof nowhere, 0)));
        note("launch", int(hipLaunchByPtr(reinterpret_cast<const void*>(kernel))));
        return error;
    }, settle, any<unsigned>({OF(1), OF(0)}), any<unsigned>({OF(64), OF(0), OF(1025)}), any<size_t>({OF(0), OF(65537)}), streams);

    static hip_Memcpy2D copies[6];
    for (auto& of : copies) {
        of.srcMemoryType = hipMemoryTypeDevice, of.srcDevice = hipDeviceptr_t(device), of.srcPitch = 64;
        of.dstMemoryType = hipMemoryTypeDevice, of.dstDevice = hipDeviceptr_t(second), of.dstPitch = 64;
        of.WidthInBytes = 64, of.Height = 2;
    }
    copies[1].srcDevice = nullptr;
    copies[2].WidthInBytes = 0;
    copies[3].srcPitch = 63;
    copies[4].dstMemoryType = hipMemoryTypeHost, copies[4].dstHost = pageable;
    copies[5].Height = 1000;
    each(FUNCTION(hipDrvMemcpy2DUnaligned), settle, any<const hip_Memcpy2D*>({OF(copies), {"from nowhere", copies + 1}, {"width 0", copies + 2}, {"pitch 63", copies + 3}, {"to pageable", copies + 4}, {"1000 rows", copies + 5}, OF(nullptr)}));
    each("hipMemset3DAsync", [](void* at, size_t pitch, size_t width, size_t height, size_t depth, hipStream_t on) { return hipMemset3DAsync(hipPitchedPtr{at, pitch, 64, 2}, 1, hipExtent{width, height, depth}, on); }, settle, memory, any<size_t>({OF(64), OF(0)}), any<size_t>({OF(64), OF(0)}), any<size_t>({OF(2), OF(0)}), any<size_t>({OF(1), OF(0)}), streams);

    static size_t sizes[3] = {4, 4, 4};
    static int values[2];
    static void* places[3] = {&values[0], &values[1], nullptr};
    static hipMemRangeAttribute wanted[3] = {hipMemRangeAttributeReadMostly, hipMemRangeAttributePreferredLocation, hipMemRangeAttribute(99)};
    each("hipMemRangeGetAttributes", [](void** to, size_t* lengths, hipMemRangeAttribute* which, size_t number, void* of, size_t length) { return values[0] = values[1] = 77, hipMemRangeGetAttributes(to, lengths, which, number, of, length); }, [] { note("first", values[0]); note("second", values[1]); }, any<void**>({OF(places), OF(places + 1), OF(nullptr)}), any<size_t*>({OF(sizes), OF(nullptr)}), any<hipMemRangeAttribute*>({OF(wanted), OF(wanted + 1), OF(nullptr)}), any<size_t>({OF(1), OF(2), OF(0)}), any<void*>({OF(managed), OF(device), OF(pageable), OF(nullptr)}), any<size_t>({OF(4096), OF(0), OF(8193)}));

    static hipFunction_t function;
    hipGetFuncBySymbol(&function, reinterpret_cast<const void*>(kernel));
    ONE(hipSuccess, [] { note("name", hipKernelNameRef(function)); });
    auto functions = any<hipFunction_t>({OF(function), OF(nullptr)});
    each(FUNCTION(hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags), nothing, any<int*>({OF(&r.number), OF(nullptr)}), functions, any<int>({OF(64), OF(0), OF(-1), OF(1025)}), any<size_t>({OF(0), OF(65537)}), any<unsigned>({OF(0), OF(1), OF(2)}));
    each(FUNCTION(hipModuleOccupancyMaxPotentialBlockSizeWithFlags), nothing, any<int*>({OF(&r.number), OF(nullptr)}), any<int*>({OF(&r.other), OF(nullptr)}), functions, any<size_t>({OF(0), OF(65537)}), any<int>({OF(0), OF(64), OF(-1), OF(4096)}), any<unsigned>({OF(0), OF(1), OF(2)}));

    static hipDriverProcAddressQueryResult status;
    each("hipGetProcAddress", [](const char* name, void** to, int version, uint64_t flags, hipDriverProcAddressQueryResult* state) { return status = hipDriverProcAddressQueryResult(77), hipGetProcAddress(name, to, version, flags, state); }, [] { note("status", int(status)); }, any<const char*>({OF("hipMalloc"), OF("hipNothing"), OF(""), OF(nullptr)}), any<void**>({OF(&r.pointer), OF(nullptr)}), any<int>({OF(600), OF(0), OF(-1), OF(100000)}), any<uint64_t>({OF(0), OF(1), OF(2), OF(99)}), any<hipDriverProcAddressQueryResult*>({OF(&status), OF(nullptr)}));

#if HIP_VERSION_MAJOR >= 7
    auto pitches = any<size_t>({OF(64), OF(0), OF(32)});
    auto widths = any<size_t>({OF(16), OF(0), OF(17)});
    auto rows = any<size_t>({OF(2), OF(0), OF(1000)});
    each("hipMemsetD2D8", [](void* to, size_t pitch, size_t width, size_t height) { return hipMemsetD2D8(hipDeviceptr_t(to), pitch, 1, width, height); }, settle, memory, pitches, widths, rows);
    each("hipMemsetD2D16", [](void* to, size_t pitch, size_t width, size_t height) { return hipMemsetD2D16(hipDeviceptr_t(to), pitch, 1, width, height); }, settle, memory, pitches, widths, rows);
    each("hipMemsetD2D32", [](void* to, size_t pitch, size_t width, size_t height) { return hipMemsetD2D32(hipDeviceptr_t(to), pitch, 1, width, height); }, settle, memory, pitches, widths, rows);
    each("hipMemsetD2D8Async", [](void* to, size_t pitch, size_t width, size_t height, hipStream_t on) { return hipMemsetD2D8Async(hipDeviceptr_t(to), pitch, 1, width, height, on); }, settle, memory, pitches, widths, rows, streams);
    each("hipMemsetD2D16Async", [](void* to, size_t pitch, size_t width, size_t height, hipStream_t on) { return hipMemsetD2D16Async(hipDeviceptr_t(to), pitch, 1, width, height, on); }, settle, memory, pitches, widths, rows, streams);
    each("hipMemsetD2D32Async", [](void* to, size_t pitch, size_t width, size_t height, hipStream_t on) { return hipMemsetD2D32Async(hipDeviceptr_t(to), pitch, 1, width, height, on); }, settle, memory, pitches, widths, rows, streams);

    static const hipMemLocation locations[] = {{hipMemLocationTypeDevice, 0}, {hipMemLocationTypeHost, 0}, {hipMemLocationTypeDevice, 1}, {hipMemLocationTypeDevice, -1}, {hipMemLocationTypeHostNuma, 0}, {hipMemLocationTypeInvalid, 0}, {hipMemLocationType(99), 0}, {hipMemLocationTypeHostNumaCurrent, 0}};
    auto where = any<int>({{"device 0", 0}, {"host", 1}, {"device 1", 2}, {"device -1", 3}, {"node 0", 4}, {"invalid", 5}, {"99", 6}, {"this node", 7}});
    auto ranges = any<void*>({OF(managed), OF(device), OF(pinned), OF(pageable), OF(nullptr)});
    auto lengths = any<size_t>({OF(8192), OF(0), OF(8193), OF(1)});
    each("hipMemAdvise_v2", [](void* of, size_t length, hipMemoryAdvise advice, int to) { return hipMemAdvise_v2(of, length, advice, locations[to]); }, nothing, ranges, lengths, any<hipMemoryAdvise>({OF(hipMemAdviseSetReadMostly), OF(hipMemAdviseUnsetReadMostly), OF(hipMemAdviseSetPreferredLocation), OF(hipMemAdviseUnsetPreferredLocation), OF(hipMemAdviseSetAccessedBy), OF(hipMemAdviseUnsetAccessedBy), OF(hipMemAdviseSetCoarseGrain), OF(hipMemAdviseUnsetCoarseGrain), {"99", hipMemoryAdvise(99)}, {"0", hipMemoryAdvise(0)}}), where);
    each("hipMemPrefetchAsync_v2", [](void* of, size_t length, int to, unsigned flags, hipStream_t on) { return hipMemPrefetchAsync_v2(of, length, locations[to], flags, on); }, settle, ranges, lengths, where, any<unsigned>({OF(0), OF(1)}), streams);

    static void* targets[] = {device, second};
    static void* sources[] = {second, pinned};
    static size_t lengths_of[] = {64, 64, 0, SIZE_MAX};
    static void *nowhere[] = {nullptr, nullptr};
    static hipMemcpyAttributes hints[] = {{hipMemcpySrcAccessOrderStream, {}, {}, 0}, {hipMemcpySrcAccessOrder(99), {}, {}, 0}};
    static size_t starts[] = {0, 1, 5};
    each("hipMemcpyBatchAsync", [](void** to, void** from, size_t* bytes, size_t number, hipMemcpyAttributes* with, size_t* first, size_t kinds, size_t* failed, hipStream_t on) { return hipMemcpyBatchAsync(to, from, bytes, number, with, first, kinds, failed, on); }, settle, any<void**>({OF(targets), OF(nowhere), OF(nullptr)}), any<void**>({OF(sources), OF(nowhere), OF(nullptr)}), any<size_t*>({OF(lengths_of), OF(lengths_of + 1), OF(lengths_of + 2), OF(nullptr)}), any<size_t>({OF(2), OF(1), OF(0)}), any<hipMemcpyAttributes*>({OF(hints), OF(hints + 1), OF(nullptr)}), any<size_t*>({OF(starts), OF(starts + 1), OF(nullptr)}), any<size_t>({OF(1), OF(0), OF(2), OF(3)}), any<size_t*>({OF(&r.size), OF(nullptr)}), streams);
    static hipMemcpy3DBatchOp operations[11];
    for (auto& of : operations) {
        of.src.type = of.dst.type = hipMemcpyOperandTypePointer;
        of.src.op.ptr = {second, 0, 0, {hipMemLocationTypeDevice, 0}}, of.dst.op.ptr = {device, 0, 0, {hipMemLocationTypeDevice, 0}};
        of.extent = {64, 2, 1}, of.srcAccessOrder = hipMemcpySrcAccessOrderStream;
    }
    operations[1].src.op.ptr.ptr = nullptr;
    operations[2].extent = {0, 2, 1};
    operations[9].src.type = hipMemcpy3DOperandType(99);
    operations[4].src.op.ptr.rowLength = 32;
    operations[5].srcAccessOrder = hipMemcpySrcAccessOrder(99);
    operations[6].extent = {64, 1000, 1};
    operations[7].src.op.ptr.rowLength = 128, operations[7].src.op.ptr.layerHeight = 4;
    each("hipMemcpy3DBatchAsync", [](size_t number, hipMemcpy3DBatchOp* of, size_t* failed, unsigned long long flags, hipStream_t on) { return hipMemcpy3DBatchAsync(number, of, failed, flags, on); }, settle, any<size_t>({OF(1), OF(0), OF(2)}), any<hipMemcpy3DBatchOp*>({OF(operations), {"from nowhere", operations + 1}, {"width 0", operations + 2}, {"kind 99", operations + 9}, {"short rows", operations + 4}, {"order 99", operations + 5}, {"1000 rows", operations + 6}, {"long rows", operations + 7}, OF(nullptr)}), any<size_t*>({OF(&r.size), OF(nullptr)}), any<unsigned long long>({OF(0), OF(1)}), streams);
    static hipMemcpy3DPeerParms peers[6];
    for (auto& of : peers) of.srcPtr = {second, 64, 64, 2}, of.dstPtr = {device, 64, 64, 2}, of.extent = {64, 2, 1};
    peers[1].srcPtr.ptr = nullptr;
    peers[2].extent = {0, 2, 1};
    peers[3].srcPtr.pitch = 32;
    peers[4].srcDevice = 1;
    peers[5].extent = {64, 1000, 1};
    auto peer_copies = any<hipMemcpy3DPeerParms*>({OF(peers), {"from nowhere", peers + 1}, {"width 0", peers + 2}, {"pitch 32", peers + 3}, {"device 1", peers + 4}, {"1000 rows", peers + 5}, OF(nullptr)});
    each("hipMemcpy3DPeer", [](hipMemcpy3DPeerParms* of) { return hipMemcpy3DPeer(of); }, settle, peer_copies);
    each("hipMemcpy3DPeerAsync", [](hipMemcpy3DPeerParms* of, hipStream_t on) { return hipMemcpy3DPeerAsync(of, on); }, settle, peer_copies, streams);

    static hipStreamAttrValue value;
    auto ids = any<hipStreamAttrID>({OF(hipStreamAttributePriority), OF(hipStreamAttributeSynchronizationPolicy), OF(hipStreamAttributeAccessPolicyWindow), OF(hipStreamAttributeMemSyncDomain), OF(hipStreamAttributeMemSyncDomainMap), {"0", hipStreamAttrID(0)}, {"99", hipStreamAttrID(99)}});
    for (int number : {0, 1, -1, 2, 9}) {
        static std::string text;
        text = "hipStreamSetAttribute " + std::to_string(number);
        value = {};
        value.priority = number;
        each(text.c_str(), [](hipStream_t of, hipStreamAttrID id, bool is_null) { return hipStreamSetAttribute(of, id, is_null ? nullptr : &value); }, nothing, streams, ids, any<bool>({OF(false), OF(true)}));
        each("hipStreamGetAttribute", [](hipStream_t of, hipStreamAttrID id, bool is_null) { static hipStreamAttrValue got; got = {}; const hipError_t error = hipStreamGetAttribute(of, id, is_null ? nullptr : &got); note("value", got.priority); return error; }, nothing, streams, ids, any<bool>({OF(false), OF(true)}));
    }
    each("hipStreamCopyAttributes", [](hipStream_t to, hipStream_t from) { return hipStreamCopyAttributes(to, from); }, nothing, streams, streams);
    each("hipStreamGetId", [](hipStream_t of, unsigned long long* to) { const hipError_t error = hipStreamGetId(of, to); if (to != nullptr && error == hipSuccess) *to = 1; return error; }, nothing, streams, any<unsigned long long*>({OF(&r.id), OF(nullptr)}));

    static HIP_LAUNCH_CONFIG config;
    static int* none = nullptr;
    static void* parameters[] = {&none};
    static hipLaunchAttribute attribute;
    each("hipDrvLaunchKernelEx", [](unsigned grid, unsigned block, unsigned bytes, hipStream_t on, hipFunction_t of, unsigned attributes, bool is_null) {
        config = {grid, 1, 1, block, 1, 1, bytes, on, &attribute, attributes};
        attribute.id = hipLaunchAttributeCooperative, attribute.val.cooperative = 1;
        return hipDrvLaunchKernelEx(is_null ? nullptr : &config, of, parameters, nullptr);
    }, settle, any<unsigned>({OF(1), OF(0), OF(100000)}), any<unsigned>({OF(64), OF(0), OF(1025)}), any<unsigned>({OF(0), OF(65537)}), streams, functions, any<unsigned>({OF(0), OF(1)}), any<bool>({OF(false), OF(true)}));

    static char garbage[256] = "not code";
    static std::string file;
    {
        std::ifstream self("/proc/self/exe", std::ios::binary);
        const std::string all{std::istreambuf_iterator<char>(self), {}};
        const size_t at = all.find(std::string("__CLANG_OFFLOAD_") + "BUNDLE__");
        file = at == std::string::npos ? "" : all.substr(at);
    }
    each(FUNCTION(hipModuleLoadFatBinary), [] { hipModuleUnload(results.module); }, any<hipModule_t*>({OF(&r.module), OF(nullptr)}), any<const void*>({{"code", file.data()}, OF(garbage), OF(nullptr)}));
    static hipModule_t module;
    hipModuleLoadData(&module, file.data());
    each(FUNCTION(hipModuleGetFunctionCount), nothing, any<unsigned*>({OF(&r.flags), OF(nullptr)}), any<hipModule_t>({OF(module), OF(nullptr)}));
    static hipLibrary_t library, other;
    auto to_library = any<hipLibrary_t*>({OF(&other), OF(nullptr)});
    auto no_options = any<hipJitOption*>({OF(nullptr)});
    auto no_values = any<void**>({OF(nullptr)});
    each(FUNCTION(hipLibraryLoadData), [] { note("unload", int(hipLibraryUnload(other))); }, to_library, any<const void*>({{"code", file.data()}, OF(garbage), OF(nullptr)}), no_options, no_values, any<unsigned>({OF(0)}), any<hipLibraryOption*>({OF(nullptr)}), no_values, any<unsigned>({OF(0)}));
    each(FUNCTION(hipLibraryLoadFromFile), [] { note("unload", int(hipLibraryUnload(other))); }, to_library, any<const char*>({OF("/nowhere"), OF("/dev/null"), OF(""), OF(nullptr)}), no_options, no_values, any<unsigned>({OF(0)}), any<hipLibraryOption*>({OF(nullptr)}), no_values, any<unsigned>({OF(0)}));
    hipLibraryLoadData(&library, static_cast<const void*>(file.data()), static_cast<hipJitOption*>(nullptr), static_cast<void**>(nullptr), 0, static_cast<hipLibraryOption*>(nullptr), static_cast<void**>(nullptr), 0);
    static hipKernel_t of_library, found;
    hipLibraryGetKernel(&of_library, library, "_Z6kernelPi");
    auto libraries = any<hipLibrary_t>({OF(library), OF(nullptr)});
    each(FUNCTION(hipLibraryGetKernel), nothing, any<hipKernel_t*>({OF(&found), OF(nullptr)}), libraries, any<const char*>({OF("_Z6kernelPi"), OF("nothing"), OF(""), OF(nullptr)}));
    each(FUNCTION(hipLibraryGetKernelCount), nothing, any<unsigned*>({OF(&r.flags), OF(nullptr)}), libraries);
    each("hipLibraryEnumerateKernels", [](hipKernel_t* to, unsigned number, hipLibrary_t of) { return found = nullptr, hipLibraryEnumerateKernels(to, number, of); }, [] { note("found", found != nullptr); }, any<hipKernel_t*>({OF(&found), OF(nullptr)}), any<unsigned>({OF(1), OF(0)}), libraries);
    each("hipKernelGetLibrary", [](hipLibrary_t* to, hipKernel_t of) { return hipKernelGetLibrary(to, of); }, [] { note("same", other == library); }, to_library, any<hipKernel_t>({OF(of_library), OF(nullptr)}));
    each(FUNCTION(hipKernelGetName), [] { note("text", results.name); }, any<const char**>({OF(&r.name), OF(nullptr)}), any<hipKernel_t>({OF(of_library), OF(nullptr)}));
    each(FUNCTION(hipLibraryUnload), nothing, any<hipLibrary_t>({OF(nullptr), OF(library)}));
    static hipDriverEntryPointQueryResult entry;
    each("hipGetDriverEntryPoint", [](const char* name, void** to, unsigned long long flags, hipDriverEntryPointQueryResult* state) { return entry = hipDriverEntryPointQueryResult(77), hipGetDriverEntryPoint(name, to, flags, state); }, [] { note("entry", int(entry)); }, any<const char*>({OF("hipMalloc"), OF("hipNothing"), OF(""), OF(nullptr)}), any<void**>({OF(&r.pointer), OF(nullptr)}), any<unsigned long long>({OF(0), OF(1), OF(2), OF(99)}), any<hipDriverEntryPointQueryResult*>({OF(&entry), OF(nullptr)}));
#endif
    ONE(hipDevicePrimaryCtxReset(-1), nothing);
    ONE(hipDevicePrimaryCtxReset(1), nothing);
    ONE(hipDevicePrimaryCtxReset(0), nothing);
    return 0;
}
