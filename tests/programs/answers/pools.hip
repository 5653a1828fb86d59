// Memory pools, memory that is allocated on streams, virtual memory.
#include "../answers.h"

using namespace answers;

static hipMemPool_t pool, standard;
static void* of_pool;
static void free_pointer() { note("free", int(hipFree(results.pointer))); }

int main(int count, char** arguments) {
    begin(count, arguments);
    Results& r = results;
    hipStream_t stream;
    hipStreamCreate(&stream);
    static hipMemPoolProps properties[10];
    for (auto& of : properties) {
        of.allocType = hipMemAllocationTypePinned;
        of.location = {hipMemLocationTypeDevice, 0};
    }
    properties[1].allocType = hipMemAllocationTypeInvalid;
    properties[2].allocType = hipMemAllocationType(9);
    properties[3].location.type = hipMemLocationTypeInvalid;
    properties[4].location.id = 1;
    properties[5].location.id = -1;
    properties[6].handleTypes = hipMemHandleTypePosixFileDescriptor;
    properties[7].handleTypes = hipMemAllocationHandleType(9);
    properties[8].maxSize = 1 << 20;
    properties[9].location.type = hipMemLocationType(9);
    each("hipMemPoolCreate", [](hipMemPool_t* to, const hipMemPoolProps* of) { return hipMemPoolCreate(to, of); }, [] { note("destroy", int(hipMemPoolDestroy(results.pool))); }, any<hipMemPool_t*>({OF(&r.pool), OF(nullptr)}),
         any<const hipMemPoolProps*>({{"good", properties}, {"no type", properties + 1}, {"type 9", properties + 2}, {"no location", properties + 3}, {"device 1", properties + 4}, {"device -1", properties + 5}, {"shareable", properties + 6}, {"handle 9", properties + 7}, {"at most 1 MiB", properties + 8}, {"location 9", properties + 9}, OF(nullptr)}));
    hipMemPoolCreate(&pool, properties);
    hipDeviceGetDefaultMemPool(&standard, 0);
    auto into = any<void**>({OF(&r.pointer), OF(nullptr)});
    auto sizes = any<size_t>({OF(1000), OF(0), OF(size_t(1) << 50), OF(SIZE_MAX)});
    auto streams = any<hipStream_t>({OF(stream), OF(nullptr), OF(hipStreamPerThread), OF(hipStreamLegacy)});
    each("hipMallocAsync", [](void** to, size_t size, hipStream_t on) { return hipMallocAsync(to, size, on); }, free_pointer, into, sizes, streams);
    each("hipMallocFromPoolAsync", [](void** to, size_t size, hipMemPool_t of, hipStream_t on) { return hipMallocFromPoolAsync(to, size, of, on); }, free_pointer, into, sizes, any<hipMemPool_t>({OF(pool), OF(standard), OF(nullptr)}), streams);
    hipMallocFromPoolAsync(&of_pool, 1000, pool, stream);
    static int local;
    each(FUNCTION(hipFreeAsync), settle, any<void*>({OF(nullptr), OF(&local)}), streams);
    auto pools = any<hipMemPool_t>({OF(pool), OF(standard), OF(nullptr)});
    auto attributes = any<hipMemPoolAttr>({OF(hipMemPoolReuseFollowEventDependencies), OF(hipMemPoolReuseAllowOpportunistic), OF(hipMemPoolReuseAllowInternalDependencies), OF(hipMemPoolAttrReleaseThreshold), OF(hipMemPoolAttrReservedMemHigh), OF(hipMemPoolAttrUsedMemHigh), {"0", hipMemPoolAttr(0)}, {"99", hipMemPoolAttr(99)}});
    static uint64_t value;
    each("hipMemPoolSetAttribute", [](hipMemPool_t of, hipMemPoolAttr which, void* from, int number) { value = uint64_t(number); return hipMemPoolSetAttribute(of, which, from); }, nothing, pools, any<hipMemPoolAttr>({OF(hipMemPoolReuseFollowEventDependencies), OF(hipMemPoolReuseAllowOpportunistic), OF(hipMemPoolReuseAllowInternalDependencies), OF(hipMemPoolAttrReleaseThreshold), OF(hipMemPoolAttrReservedMemHigh), OF(hipMemPoolAttrUsedMemHigh), OF(hipMemPoolAttrReservedMemCurrent), OF(hipMemPoolAttrUsedMemCurrent), {"0", hipMemPoolAttr(0)}, {"99", hipMemPoolAttr(99)}}), any<void*>({OF(&value), OF(nullptr)}), any<int>({OF(0), OF(1), OF(4097)}));
    each("hipMemPoolGetAttribute", [](hipMemPool_t of, hipMemPoolAttr which, void* to) { value = 0; return hipMemPoolGetAttribute(of, which, to); }, [] { note("value", value); }, pools, any<hipMemPoolAttr>({OF(hipMemPoolReuseFollowEventDependencies), OF(hipMemPoolReuseAllowOpportunistic), OF(hipMemPoolReuseAllowInternalDependencies), OF(hipMemPoolAttrReleaseThreshold), {"0", hipMemPoolAttr(0)}, {"99", hipMemPoolAttr(99)}}), any<void*>({OF(&value), OF(nullptr)}));
    each(FUNCTION(hipMemPoolTrimTo), nothing, pools, any<size_t>({OF(0), OF(4096), OF(SIZE_MAX)}));
    static hipMemAccessDesc access[] = {{{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtReadWrite}, {{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtRead}, {{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtNone}, {{hipMemLocationTypeDevice, 1}, hipMemAccessFlagsProtReadWrite}, {{hipMemLocationTypeInvalid, 0}, hipMemAccessFlagsProtReadWrite}, {{hipMemLocationTypeDevice, -1}, hipMemAccessFlagsProtReadWrite}};
    auto accesses = any<const hipMemAccessDesc*>({{"read and write", access}, {"read", access + 1}, {"none", access + 2}, {"device 1", access + 3}, {"nowhere", access + 4}, {"device -1", access + 5}, OF(nullptr)});
    each(FUNCTION(hipMemPoolSetAccess), nothing, pools, accesses, any<size_t>({OF(1), OF(0)}));
    static hipMemLocation places[] = {{hipMemLocationTypeDevice, 0}, {hipMemLocationTypeDevice, 1}, {hipMemLocationTypeInvalid, 0}, {hipMemLocationTypeDevice, -1}};
    each(FUNCTION(hipMemPoolGetAccess), nothing, any<hipMemAccessFlags*>({{"&r.number", reinterpret_cast<hipMemAccessFlags*>(&r.number)}, OF(nullptr)}), pools, any<hipMemLocation*>({{"device 0", places}, {"device 1", places + 1}, {"nowhere", places + 2}, {"device -1", places + 3}, OF(nullptr)}));
    auto devices = any<int>({OF(0), OF(1), OF(-1)});
    each(FUNCTION(hipDeviceGetDefaultMemPool), nothing, any<hipMemPool_t*>({OF(&r.pool), OF(nullptr)}), devices);
    each(FUNCTION(hipDeviceGetMemPool), nothing, any<hipMemPool_t*>({OF(&r.pool), OF(nullptr)}), devices);
    each(FUNCTION(hipDeviceSetMemPool), [] { hipDeviceSetMemPool(0, standard); }, devices, pools);
    static int descriptor;
    each(FUNCTION(hipMemPoolExportToShareableHandle), nothing, any<void*>({OF(&descriptor), OF(nullptr)}), pools, any<hipMemAllocationHandleType>({OF(hipMemHandleTypePosixFileDescriptor), OF(hipMemHandleTypeNone), {"9", hipMemAllocationHandleType(9)}}), any<unsigned>({OF(0), OF(1)}));
    each(FUNCTION(hipMemPoolDestroy), nothing, any<hipMemPool_t>({OF(standard), OF(nullptr)}));

    static hipMemAllocationProp memory[8];
    for (auto& of : memory) {
        of.type = hipMemAllocationTypePinned;
        of.location = {hipMemLocationTypeDevice, 0};
    }
    memory[1].type = hipMemAllocationTypeInvalid;
    memory[2].location.id = 1;
    memory[3].location.id = -1;
    memory[4].location.type = hipMemLocationTypeInvalid;
    memory[5].requestedHandleType = hipMemHandleTypePosixFileDescriptor;
    memory[6].requestedHandleType = hipMemAllocationHandleType(9);
    memory[7].type = hipMemAllocationType(9);
    auto kinds = any<const hipMemAllocationProp*>({{"good", memory}, {"no type", memory + 1}, {"device 1", memory + 2}, {"device -1", memory + 3}, {"nowhere", memory + 4}, {"shareable", memory + 5}, {"handle 9", memory + 6}, {"type 9", memory + 7}, OF(nullptr)});
    each(FUNCTION(hipMemGetAllocationGranularity), [] { results.size = 0; }, any<size_t*>({OF(nullptr)}), kinds, any<hipMemAllocationGranularity_flags>({OF(hipMemAllocationGranularityMinimum), OF(hipMemAllocationGranularityRecommended), {"9", hipMemAllocationGranularity_flags(9)}}));
    static size_t granularity = 2 << 20;
    static hipMemGenericAllocationHandle_t physical;
    each(FUNCTION(hipMemCreate), [] { note("release", int(hipMemRelease(physical))); }, any<hipMemGenericAllocationHandle_t*>({OF(&physical), OF(nullptr)}), any<size_t>({OF(granularity), OF(0), OF(1000), OF(granularity * 3)}), kinds, any<unsigned long long>({OF(0), OF(1)}));
    each(FUNCTION(hipMemAddressReserve), [] { note("free", int(hipMemAddressFree(results.pointer, granularity))); }, into, any<size_t>({OF(granularity), OF(1000)}), any<size_t>({OF(0), OF(granularity), OF(3)}), any<void*>({OF(nullptr)}), any<unsigned long long>({OF(0), OF(1)}));
    static void* range;
    hipMemAddressReserve(&range, granularity, 0, nullptr, 0);
    static hipMemGenericAllocationHandle_t mapped;
    hipMemCreate(&mapped, granularity, memory, 0);
    each(FUNCTION(hipMemMap), [] { note("unmap", int(hipMemUnmap(range, granularity))); }, any<void*>({OF(range), OF(nullptr)}), any<size_t>({OF(granularity), OF(0)}), any<size_t>({OF(0), OF(4096)}), any<hipMemGenericAllocationHandle_t>({OF(mapped), OF(nullptr)}), any<unsigned long long>({OF(0), OF(1)}));
    hipMemMap(range, granularity, 0, mapped, 0);
    each(FUNCTION(hipMemSetAccess), nothing, any<void*>({OF(range), OF(nullptr)}), any<size_t>({OF(granularity), OF(0)}), accesses, any<size_t>({OF(1), OF(0)}));
    each(FUNCTION(hipMemGetAccess), nothing, any<unsigned long long*>({OF(&r.id), OF(nullptr)}), any<const hipMemLocation*>({{"device 0", places}, {"device 1", places + 1}, {"nowhere", places + 2}, {"device -1", places + 3}, OF(nullptr)}), any<void*>({OF(range), OF(nullptr), OF(&local)}));
    static hipMemAllocationProp found;
    each(FUNCTION(hipMemGetAllocationPropertiesFromHandle), [] { note("type", int(found.type)); note("device", found.location.id); }, any<hipMemAllocationProp*>({OF(&found), OF(nullptr)}), any<hipMemGenericAllocationHandle_t>({OF(mapped), OF(nullptr)}));
    each(FUNCTION(hipMemRetainAllocationHandle), [] { note("release", int(hipMemRelease(physical))); }, any<hipMemGenericAllocationHandle_t*>({OF(&physical), OF(nullptr)}), any<void*>({OF(range), OF(nullptr), OF(&local)}));
    each(FUNCTION(hipMemExportToShareableHandle), nothing, any<void*>({OF(nullptr)}), any<hipMemGenericAllocationHandle_t>({OF(mapped), OF(nullptr)}), any<hipMemAllocationHandleType>({OF(hipMemHandleTypePosixFileDescriptor), OF(hipMemHandleTypeNone), {"9", hipMemAllocationHandleType(9)}}), any<unsigned long long>({OF(0), OF(1)}));
    each(FUNCTION(hipMemUnmap), nothing, any<void*>({OF(nullptr)}), any<size_t>({OF(granularity), OF(0)}));
    each(FUNCTION(hipMemRelease), nothing, any<hipMemGenericAllocationHandle_t>({OF(nullptr)}));
    each(FUNCTION(hipMemAddressFree), nothing, any<void*>({OF(nullptr)}), any<size_t>({OF(granularity), OF(0)}));
    return 0;
}
