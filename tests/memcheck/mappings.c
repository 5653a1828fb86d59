// Virtual memory: reserved addresses, physical memory, and what is mapped where.
#include "check.h"

#include <unistd.h>

void mappings(struct Setup* s) {
    hipMemAllocationProp prop = {0}, told;
    prop.type = hipMemAllocationTypePinned;
    prop.requestedHandleType = hipMemHandleTypePosixFileDescriptor;
    prop.location.type = hipMemLocationTypeDevice;
    size_t unit = 0;
    void *base = NULL, *wanted;
    hipMemGenericAllocationHandle_t memory = NULL, same = NULL, imported = NULL;
    hipMemAccessDesc access[2] = {{{0}, 0}, {{0}, 0}};
    unsigned long long flags = 0;
    int descriptor = -1;
    GOOD(hipMemGetAllocationGranularity(&unit, &prop, hipMemAllocationGranularityMinimum));
    THAT(unit >= 4096);
    FAILS(hipMemGetAllocationGranularity(NULL, &prop, hipMemAllocationGranularityMinimum), hipErrorInvalidValue);
    FAILS(hipMemGetAllocationGranularity(&unit, NULL, hipMemAllocationGranularityMinimum), hipErrorInvalidValue);
    GOOD(hipMemAddressReserve(&base, 4 * unit, 0, NULL, 0));
    FAILS(hipMemAddressReserve(NULL, unit, 0, NULL, 0), hipErrorInvalidValue);
    FAILS(hipMemAddressReserve(&wanted, unit - 1, 0, NULL, 0), hipErrorInvalidValue);
    GOOD(hipMemCreate(&memory, unit, &prop, 0));
    FAILS(hipMemCreate(NULL, unit, &prop, 0), hipErrorInvalidValue);
    FAILS(hipMemCreate(&same, unit, NULL, 0), hipErrorInvalidValue);
    GOOD(hipMemExportToShareableHandle(&descriptor, memory, hipMemHandleTypePosixFileDescriptor, 0));
    FAILS(hipMemExportToShareableHandle(NULL, memory, hipMemHandleTypePosixFileDescriptor, 0), hipErrorInvalidValue);
    GOOD(hipMemImportFromShareableHandle(&imported, &descriptor, hipMemHandleTypePosixFileDescriptor));
    GOOD(hipMemRelease(imported));
    GOOD(hipMemImportFromShareableHandle(&imported, (void*)(intptr_t)descriptor, hipMemHandleTypePosixFileDescriptor));
    THAT(close(descriptor) == 0);
    FAILS(hipMemImportFromShareableHandle(&same, (void*)(intptr_t)descriptor, hipMemHandleTypePosixFileDescriptor), hipErrorInvalidValue);
    FAILS(hipMemImportFromShareableHandle(&same, NULL, hipMemHandleTypePosixFileDescriptor), hipErrorInvalidValue);
    GOOD(hipMemMap(base, unit, 0, memory, 0));
    GOOD(hipMemMap((char*)base + unit, unit, 0, imported, 0));
    FAILS(hipMemMap(base, unit, 0, memory, 0), hipErrorInvalidValue);
    access[0].location = prop.location;
    access[0].flags = hipMemAccessFlagsProtReadWrite;
    access[1] = access[0];
    GOOD(hipMemSetAccess(base, 2 * unit, access, 2));
    FAILS(hipMemSetAccess(base, unit / 2, access, 1), hipErrorInvalidValue);
    FAILS(hipMemSetAccess(base, unit, NULL, 1), hipErrorInvalidValue);
    GOOD(hipMemGetAccess(&flags, &prop.location, base));
    THAT(flags == hipMemAccessFlagsProtReadWrite);
    FAILS(hipMemGetAccess(&flags, NULL, base), hipErrorInvalidValue);
    GOOD(hipMemsetAsync(base, 1, 2 * unit, s->stream));
    GOOD(hipMemcpyAsync(s->host, (char*)base + unit - 4, 8, hipMemcpyDeviceToHost, s->stream));
    GOOD(hipStreamSynchronize(s->stream));
    GOOD(hipMemRetainAllocationHandle(&same, (char*)base + 5));
    THAT(same == memory);
    GOOD(hipMemRelease(same));
    FAILS(hipMemRetainAllocationHandle(&same, s->host), hipErrorInvalidValue);
    GOOD(hipMemGetAllocationPropertiesFromHandle(&told, memory));
    THAT(told.type == prop.type && told.requestedHandleType == prop.requestedHandleType && told.location.id == 0);
    THAT(told.location.type == prop.location.type && told.win32HandleMetaData == NULL);
    WRITTEN(told.allocFlags);
    FAILS(hipMemGetAllocationPropertiesFromHandle(&told, NOWHERE), hipErrorInvalidValue);
    GOOD(hipMemUnmap(base, unit));
    FAILS(hipMemUnmap(base, unit), hipErrorInvalidValue);
    GOOD(hipMemUnmap((char*)base + unit, unit));
    GOOD(hipMemRelease(memory));
    GOOD(hipMemRelease(imported));
    FAILS(hipMemRelease(memory), hipErrorInvalidValue);
    FAILS(hipMemAddressFree(base, unit), hipErrorInvalidValue);
    GOOD(hipMemAddressFree(base, 4 * unit));
}
