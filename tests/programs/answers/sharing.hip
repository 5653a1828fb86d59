// Memory and events that processes share, as far as one process can ask: handles are made and refused, not opened by the process that made them.
#include "../answers.h"

#include <cerrno>
#include <fcntl.h>

using namespace answers;

#if HIP_VERSION_MAJOR < 7
#define requestedHandleTypes requestedHandleType
#endif

int main(int count, char** arguments) {
    begin(count, arguments);
    Results& r = results;
    static char pageable[4096];
    char *device = nullptr, *pinned = nullptr, *managed = nullptr;
    hipMalloc(&device, 1 << 20);
    hipHostMalloc(&pinned, 4096);
    hipMallocManaged(&managed, 4096);
    hipMemPool_t pool;
    hipDeviceGetDefaultMemPool(&pool, 0);
    void* of_pool = nullptr;
    hipMallocAsync(&of_pool, 4096, nullptr);
    hipDeviceSynchronize();
    hipStream_t stream;
    hipStreamCreate(&stream);
    hipEvent_t plain, shared, timed;
    hipEventCreate(&plain);
    hipEventCreateWithFlags(&shared, hipEventDisableTiming | hipEventInterprocess);
    hipEventCreateWithFlags(&timed, hipEventDisableTiming);
    ONE(hipEventCreateWithFlags(&r.event, hipEventInterprocess), [] { hipEventDestroy(results.event); });
    ONE(hipEventCreateWithFlags(&r.event, hipEventInterprocess | hipEventDisableTiming), [] { note("destroy", int(hipEventDestroy(results.event))); });
    ONE(hipEventCreateWithFlags(&r.event, hipEventInterprocess | hipEventBlockingSync), [] { hipEventDestroy(results.event); });
    ONE(hipEventCreateWithFlags(&r.event, hipEventInterprocess | hipEventDisableTiming | hipEventBlockingSync), [] { hipEventDestroy(results.event); });

    static hipIpcMemHandle_t memory_handle;
    static hipIpcEventHandle_t event_handle;
    auto memory = any<void*>({OF(device), {"device + 4096", device + 4096}, OF(pinned), OF(managed), {"of_pool", of_pool}, OF(pageable), OF(nullptr)});
    each(FUNCTION(hipIpcGetMemHandle), nothing, any<hipIpcMemHandle_t*>({OF(&memory_handle), OF(nullptr)}), memory);
    each(FUNCTION(hipIpcCloseMemHandle), nothing, any<void*>({OF(nullptr), OF(device), OF(pinned), OF(pageable)}));
    memory_handle = {};
    each("hipIpcOpenMemHandle", [](void** to, unsigned flags) { return hipIpcOpenMemHandle(to, memory_handle, flags); }, nothing, any<void**>({OF(&r.pointer), OF(nullptr)}), any<unsigned>({OF(hipIpcMemLazyEnablePeerAccess), OF(0), OF(2)}));
    each(FUNCTION(hipIpcGetEventHandle), nothing, any<hipIpcEventHandle_t*>({OF(&event_handle), OF(nullptr)}), any<hipEvent_t>({OF(shared), OF(plain), OF(timed), OF(nullptr)}));
    event_handle = {};
    each("hipIpcOpenEventHandle", [](hipEvent_t* to) { return hipIpcOpenEventHandle(to, event_handle); }, nothing, any<hipEvent_t*>({OF(nullptr)}));
    // An event that processes share, used by its own.
    ONE(hipEventQuery(shared), nothing);
    ONE(hipEventSynchronize(shared), nothing);
    ONE(hipStreamWaitEvent(stream, shared, 0), settle);
    ONE(hipEventRecord(shared, stream), settle);
    ONE(hipEventQuery(shared), nothing);
    ONE(hipEventSynchronize(shared), nothing);
    ONE(hipStreamWaitEvent(stream, shared, 0), settle);
    ONE(hipEventElapsedTime(&r.time_ms, shared, shared), nothing);
    ONE(hipEventElapsedTime(&r.time_ms, plain, shared), nothing);

    // Physical memory with a descriptor.
    static hipMemAllocationProp properties{};
    properties.type = hipMemAllocationTypePinned, properties.location = {hipMemLocationTypeDevice, 0}, properties.requestedHandleTypes = hipMemHandleTypePosixFileDescriptor;
    size_t granularity = 0;
    hipMemGetAllocationGranularity(&granularity, &properties, hipMemAllocationGranularityMinimum);
    static hipMemGenericAllocationHandle_t exported, kept;
    hipMemCreate(&exported, granularity, &properties, 0);
    properties.requestedHandleTypes = hipMemHandleTypeNone;
    hipMemCreate(&kept, granularity, &properties, 0);
    static int descriptor;
    auto kinds = any<hipMemAllocationHandleType>({OF(hipMemHandleTypePosixFileDescriptor), OF(hipMemHandleTypeNone), OF(hipMemHandleTypeWin32), {"9", hipMemAllocationHandleType(9)}});
    each("hipMemExportToShareableHandle", [](void* to, hipMemGenericAllocationHandle_t of, hipMemAllocationHandleType kind, unsigned long long flags) { return hipMemExportToShareableHandle(to, of, kind, flags); }, [] {
        note("open", fcntl(descriptor, F_GETFD) >= 0);
        close(descriptor);
    }, any<void*>({OF(&descriptor), OF(nullptr)}), any<hipMemGenericAllocationHandle_t>({OF(exported), OF(kept), OF(nullptr)}), kinds, any<unsigned long long>({OF(0), OF(1)}));
    static int of_exported;
    hipMemExportToShareableHandle(&of_exported, exported, hipMemHandleTypePosixFileDescriptor, 0);
    static hipMemGenericAllocationHandle_t imported;
    static const int closed = 1000;
    each("hipMemImportFromShareableHandle", [](hipMemGenericAllocationHandle_t* to, const int* from, hipMemAllocationHandleType kind) { return hipMemImportFromShareableHandle(to, from == nullptr ? nullptr : reinterpret_cast<void*>(uintptr_t(*from)), kind); }, [] { note("release", int(hipMemRelease(imported))); }, any<hipMemGenericAllocationHandle_t*>({OF(&imported), OF(nullptr)}), any<const int*>({OF(&of_exported), OF(&closed)}), kinds);

    hipMemPoolProps pool_properties{};
    pool_properties.allocType = hipMemAllocationTypePinned, pool_properties.location = {hipMemLocationTypeDevice, 0};
    each("hipMemPoolExportPointer", [](hipMemPoolPtrExportData* to, void* of) { return hipMemPoolExportPointer(to, of); }, nothing, any<hipMemPoolPtrExportData*>({OF(nullptr)}), memory);
    static hipMemPoolPtrExportData data;
    each("hipMemPoolImportPointer", [](void** to, hipMemPool_t into, hipMemPoolPtrExportData* from) { return hipMemPoolImportPointer(to, into, from); }, nothing, any<void**>({OF(&r.pointer), OF(nullptr)}), any<hipMemPool_t>({OF(nullptr)}), any<hipMemPoolPtrExportData*>({OF(&data), OF(nullptr)}));
    return 0;
}
