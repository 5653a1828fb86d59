// Memory of devices, of the host and of both; what is told about pointers.
#include "../answers.h"

using namespace answers;

static char* device;
static char* pinned;
static char* managed;
static char* registered;
static char pageable[8192];

static void free_pointer() { note("free", int(hipFree(results.pointer))); }
static void free_host() {
    unsigned flags = 0;
    note("flags", int(hipHostGetFlags(&flags, results.pointer)));
    note("flags", flags);
    note("free", int(hipHostFree(results.pointer)));
}

int main(int count, char** arguments) {
    begin(count, arguments);
    Results& r = results;
    hipMalloc(&device, 4096);
    hipHostMalloc(&pinned, 4096);
    hipMallocManaged(&managed, 4096);
    registered = static_cast<char*>(aligned_alloc(4096, 8192));
    memset(registered, 0, 8192);
    hipHostRegister(registered, 4096, hipHostRegisterDefault);

    auto into = any<void**>({OF(&r.pointer), OF(nullptr)});
    auto sizes = any<size_t>({OF(1000), OF(0), OF(1), OF(size_t(1) << 50), OF(SIZE_MAX)});
    each(FUNCTION(hipMalloc), free_pointer, into, sizes);
    each(FUNCTION(hipExtMallocWithFlags), free_pointer, into, sizes, any<unsigned>({OF(hipDeviceMallocDefault), OF(hipDeviceMallocFinegrained), OF(hipDeviceMallocUncached), OF(hipMallocSignalMemory), OF(8), OF(0x80)}));
    each(FUNCTION(hipMallocManaged), free_pointer, into, sizes, any<unsigned>({OF(hipMemAttachGlobal), OF(hipMemAttachHost), OF(hipMemAttachSingle), OF(0), OF(3)}));
    each(FUNCTION(hipMallocHost), free_host, into, sizes);
    each(FUNCTION(hipHostAlloc), free_host, into, sizes, any<unsigned>({OF(hipHostMallocDefault), OF(hipHostMallocPortable), OF(hipHostMallocCoherent), OF(0x10000)}));
    others_max = 3;
    each(FUNCTION(hipHostMalloc), free_host, into, sizes,
         any<unsigned>({OF(hipHostMallocDefault), OF(hipHostMallocPortable), OF(hipHostMallocMapped), OF(hipHostMallocWriteCombined), OF(hipHostMallocNumaUser), OF(hipHostMallocCoherent), OF(hipHostMallocNonCoherent),
                        OF(hipHostMallocCoherent | hipHostMallocNonCoherent), OF(hipHostMallocPortable | hipHostMallocMapped), OF(hipHostMallocWriteCombined | hipHostMallocCoherent), OF(hipHostMallocMapped | hipHostMallocNonCoherent), OF(8), OF(0x10), OF(0x10000), OF(0x10000000)}));
    others_max = 2;
    each(FUNCTION(hipMemAllocHost), free_host, into, sizes);
    each(FUNCTION(hipMallocPitch), free_pointer, into, any<size_t*>({OF(&r.size), OF(nullptr)}), any<size_t>({OF(100), OF(0), OF(1), OF(256), OF(257), OF(SIZE_MAX)}), any<size_t>({OF(10), OF(0), OF(1), OF(SIZE_MAX)}));
    each(FUNCTION(hipMemAllocPitch), free_pointer, into, any<size_t*>({OF(&r.size), OF(nullptr)}), any<size_t>({OF(100), OF(0), OF(257), OF(SIZE_MAX)}), any<size_t>({OF(10), OF(0), OF(SIZE_MAX)}), any<unsigned>({OF(4), OF(8), OF(16), OF(0), OF(3), OF(2)}));
    static hipPitchedPtr pitched;
    static hipExtent extents[] = {{100, 10, 5}, {0, 10, 5}, {100, 0, 5}, {100, 10, 0}, {SIZE_MAX, 10, 5}, {0, 0, 0}};
    each("hipMalloc3D", [](hipPitchedPtr* to, int which) { return hipMalloc3D(to, extents[which]); },
         [] { note("pitch", pitched.pitch); note("x", pitched.xsize); note("y", pitched.ysize); note("free", int(hipFree(pitched.ptr))); },
         any<hipPitchedPtr*>({OF(&pitched), OF(nullptr)}), any<int>({{"100x10x5", 0}, {"0x10x5", 1}, {"100x0x5", 2}, {"100x10x0", 3}, {"max", 4}, {"0", 5}}));
    each(FUNCTION(hipMemGetInfo), nothing, any<size_t*>({OF(nullptr)}), any<size_t*>({OF(nullptr)}));

    // Memory of its own for each call: of some kinds it is freed.
    static char* own;
    const auto made = [](int kind) {
        switch (kind) {
        case 0: hipMalloc(&own, 4096); break;
        case 1: hipHostMalloc(&own, 4096); break;
        case 2: hipMallocManaged(&own, 4096); break;
        case 3: hipMallocAsync(&own, 4096, nullptr); break;
        case 4: own = pageable; break;
        default: own = nullptr;
        }
        return own;
    };
    auto made_kinds = any<int>({{"device", 0}, {"pinned", 1}, {"managed", 2}, {"pool", 3}, {"pageable", 4}, {"null", 5}});
    each("hipFree", [=](int kind) { return hipFree(made(kind)); }, nothing, made_kinds);
    each("hipFree twice", [=](int kind) { return made(kind), hipFree(own), hipGetLastError(), hipFree(own); }, nothing, any<int>({{"device", 0}, {"null", 5}}));
    each("hipHostFree", [=](int kind) { return hipHostFree(made(kind)); }, nothing, made_kinds);
    each("hipFreeHost", [=](int kind) { return hipFreeHost(made(kind)); }, nothing, made_kinds);
    each("hipFreeAsync", [=](int kind) { return hipFreeAsync(made(kind), nullptr); }, settle, made_kinds);
    each("hipHostUnregister", [=](int kind) { return hipHostUnregister(made(kind)); }, nothing, any<int>({{"device", 0}, {"managed", 2}, {"pageable", 4}, {"null", 5}}));

    auto memory = any<void*>({OF(pinned), OF(pinned + 100), OF(pinned + 4096), OF(registered), OF(registered + 100), OF(registered + 4096), OF(managed), OF(managed + 100), OF(device), OF(device + 100), OF(device + 4095), OF(pageable), OF(nullptr)});
    each(FUNCTION(hipHostGetDevicePointer), [] { note("same", 1); }, into, memory, any<unsigned>({OF(0), OF(1)}));
    each(FUNCTION(hipHostGetFlags), nothing, any<unsigned*>({OF(&r.flags), OF(nullptr)}), memory);
    static hipPointerAttribute_t attributes;
    each(FUNCTION(hipPointerGetAttributes), [] {
        note("type", int(attributes.type));
        note("device", attributes.device);
        note("managed", attributes.isManaged);
        note("flags", attributes.allocationFlags);
        note("host", attributes.hostPointer != nullptr);
        note("devices", attributes.devicePointer != nullptr);
    }, any<hipPointerAttribute_t*>({OF(&attributes), OF(nullptr)}), memory);
    auto attribute = Choices<hipPointer_attribute>();
    static const char* const names[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19", "20"};
    for (int of = 1; of <= 20; ++of) attribute.push_back({names[of], hipPointer_attribute(of)});
    attribute.push_back({"0", hipPointer_attribute(0)});
    // Buffers' ids and pointers are each runtime's own.
    static char data[64];
    each("hipPointerGetAttribute", [](void* to, hipPointer_attribute of, void* about) {
        memset(data, 0x5a, sizeof data);
        const hipError_t error = hipPointerGetAttribute(to, of, about);
        int changed = 0;
        while (changed < 64 && data[63 - changed] == 0x5a) ++changed;
        note("bytes", 64 - changed);
        const bool is_ones_own = of == HIP_POINTER_ATTRIBUTE_BUFFER_ID || of == HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR || of == HIP_POINTER_ATTRIBUTE_HOST_POINTER || of == HIP_POINTER_ATTRIBUTE_DEVICE_POINTER || of == HIP_POINTER_ATTRIBUTE_CONTEXT || of == HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE;
        long long value = 0;
        memcpy(&value, data, changed <= 56 ? 8 : 4);
        if (!is_ones_own && changed < 64) note("value", value);
        line += " error=";
        return error;
    }, nothing, any<void*>({OF(data), OF(nullptr)}), attribute, memory);
    each("hipDrvPointerGetAttributes", [](unsigned number, hipPointer_attribute* which, void** to, void* about) { return hipDrvPointerGetAttributes(number, which, to, about); }, nothing,
         any<unsigned>({OF(1), OF(0)}), any<hipPointer_attribute*>({{"memory type", [] { static hipPointer_attribute of = HIP_POINTER_ATTRIBUTE_MEMORY_TYPE; return &of; }()}, {"99", [] { static hipPointer_attribute of = hipPointer_attribute(99); return &of; }()}, OF(nullptr)}),
         any<void**>({{"&number", [] { static void* to = &results.number; return &to; }()}, OF(nullptr)}), memory);
    each(FUNCTION(hipPointerSetAttribute), nothing, any<const void*>({OF(data), OF(nullptr)}), any<hipPointer_attribute>({OF(HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS), OF(HIP_POINTER_ATTRIBUTE_MEMORY_TYPE), {"99", hipPointer_attribute(99)}}), memory);
    each("hipMemGetAddressRange", [](hipDeviceptr_t* base, size_t* size, void* of) { return hipMemGetAddressRange(base, size, of); }, nothing, any<hipDeviceptr_t*>({OF(&r.pointer), OF(nullptr)}), any<size_t*>({OF(&r.size), OF(nullptr)}), memory);
    each(FUNCTION(hipMemPtrGetInfo), nothing, any<void*>({OF(device), OF(device + 100), OF(pinned), OF(managed), OF(registered), OF(pageable), OF(nullptr)}), any<size_t*>({OF(&r.size), OF(nullptr)}));

    each("hipHostRegister", [](char* of, size_t size, unsigned flags) { return hipHostRegister(of, size, flags); }, [] {
        unsigned flags = 0;
        note("flags", int(hipHostGetFlags(&flags, registered + 4096)));
        note("flags", flags);
        note("unregister", int(hipHostUnregister(registered + 4096)));
    }, any<char*>({OF(registered + 4096), OF(nullptr)}), any<size_t>({OF(4096), OF(0), OF(1)}),
         any<unsigned>({OF(hipHostRegisterDefault), OF(hipHostRegisterPortable), OF(hipHostRegisterMapped), OF(hipHostRegisterIoMemory), OF(hipHostRegisterReadOnly), OF(hipExtHostRegisterCoarseGrained), OF(0x10), OF(0x100), OF(0x80000000)}));
    ONE(hipHostRegister(registered, 4096, 0), nothing);
    each(FUNCTION(hipHostUnregister), nothing, any<void*>({OF(registered), OF(registered), OF(nullptr), OF(pageable)}));
    hipHostRegister(registered, 4096, hipHostRegisterDefault);

    auto advices = any<hipMemoryAdvise>({OF(hipMemAdviseSetReadMostly), OF(hipMemAdviseUnsetReadMostly), OF(hipMemAdviseSetPreferredLocation), OF(hipMemAdviseUnsetPreferredLocation), OF(hipMemAdviseSetAccessedBy), OF(hipMemAdviseUnsetAccessedBy), OF(hipMemAdviseSetCoarseGrain), OF(hipMemAdviseUnsetCoarseGrain), {"0", hipMemoryAdvise(0)}, {"99", hipMemoryAdvise(99)}});
    auto managed_memory = any<const void*>({OF(managed), OF(managed + 100), OF(nullptr), OF(device)});
    each(FUNCTION(hipMemAdvise), nothing, managed_memory, any<size_t>({OF(4096), OF(0), OF(100)}), advices, any<int>({OF(0), OF(hipCpuDeviceId), OF(1), OF(-5)}));
    each("hipMemPrefetchAsync", [](const void* of, size_t size, int to, hipStream_t stream) { return hipMemPrefetchAsync(of, size, to, stream); }, settle, managed_memory, any<size_t>({OF(4096), OF(0), OF(100)}), any<int>({OF(0), OF(hipCpuDeviceId), OF(1), OF(-5)}), any<hipStream_t>({OF(nullptr), OF(hipStreamPerThread)}));
    each("hipMemRangeGetAttribute", [](void* to, size_t size, hipMemRangeAttribute of, const void* about, size_t length) {
        return hipMemRangeGetAttribute(to, size, of, about, length);
    }, nothing, any<void*>({OF(&r.number), OF(nullptr)}), any<size_t>({OF(4), OF(0), OF(3), OF(8)}),
         any<hipMemRangeAttribute>({OF(hipMemRangeAttributeReadMostly), OF(hipMemRangeAttributePreferredLocation), OF(hipMemRangeAttributeAccessedBy), OF(hipMemRangeAttributeLastPrefetchLocation), OF(hipMemRangeAttributeCoherencyMode), {"0", hipMemRangeAttribute(0)}, {"99", hipMemRangeAttribute(99)}}), managed_memory, any<size_t>({OF(4096), OF(0), OF(100)}));
    return 0;
}
