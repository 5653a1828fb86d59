// Virtual memory management: addresses are reserved, physical memory is created and mapped there, and what is mapped side by side is used
// like one allocation.
#include "runtime.h"

#include <unistd.h>

__global__ void ramp(int* at, size_t count, int first) {
    for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < count; i += static_cast<size_t>(gridDim.x) * blockDim.x)
        at[i] = first + static_cast<int>(i);
}
__global__ void late(int* at, int value, long turns) {
    for (long i = 0; i < turns; i++) __builtin_amdgcn_s_sleep(1);
    *at = value;
}

static hipMemAllocationProp properties{};
static size_t unit = 0;
using Handle = hipMemGenericAllocationHandle_t;

static bool is_amds() { return check::amds_release() != 0; }

static int* reserve(size_t units) {
    void* at = nullptr;
    HIP_CHECK(hipMemAddressReserve(&at, units * unit, 0, nullptr, 0));
    return static_cast<int*>(at);
}

static Handle create(size_t units) {
    Handle handle{};
    HIP_CHECK(hipMemCreate(&handle, units * unit, &properties, 0));
    return handle;
}

static int* unit_of(int* base, size_t index) { return base + index * unit / sizeof(int); }

static void open(int* at, size_t units, hipMemAccessFlags flags = hipMemAccessFlagsProtReadWrite) {
    hipMemAccessDesc access{};
    access.location = properties.location;
    access.flags = flags;
    HIP_CHECK(hipMemSetAccess(at, units * unit, &access, 1));
}

static void map(int* at, size_t units, Handle handle) {
    HIP_CHECK(hipMemMap(at, units * unit, 0, handle, 0));
    open(at, units);
}

static std::vector<int> read(const int* at, size_t count) {
    std::vector<int> values(count);
    HIP_CHECK(hipMemcpy(values.data(), at, count * sizeof(int), hipMemcpyDeviceToHost));
    return values;
}

static bool is_ramp(const std::vector<int>& values, int first) {
    for (size_t i = 0; i < values.size(); i++)
        if (values[i] != first + static_cast<int>(i)) return false;
    return true;
}

// A range grows as an allocator grows it, while kernels run on what is there; copies, fills and kernels cross the mappings.
static void grows() {
    const size_t kUnits = 6, ints = unit / sizeof(int);
    int* base = reserve(kUnits);
    std::vector<Handle> handles;
    for (size_t units = 1; units <= kUnits; units++) {
        handles.push_back(create(1));
        map(unit_of(base, units - 1), 1, handles.back());
        late<<<1, 1>>>(base, static_cast<int>(units), 50);
        ramp<<<64, 256>>>(base + 1, units * ints - 1, static_cast<int>(units));
    }
    HIP_CHECK(hipDeviceSynchronize());
    EXPECT(read(base, 1)[0] == static_cast<int>(kUnits));
    EXPECT(is_ramp(read(base + 1, kUnits * ints - 1), kUnits));
    HIP_CHECK(hipMemset(unit_of(base, 1) - 2, 0x11, unit + 16));
    EXPECT((read(unit_of(base, 1) - 3, 3) == std::vector<int>{static_cast<int>(kUnits + ints - 4), 0x11111111, 0x11111111}));
    HIP_CHECK(hipMemcpy(unit_of(base, 3) - 1, base + 1, 2 * unit, hipMemcpyDeviceToDevice));
    EXPECT(is_ramp(read(unit_of(base, 3) - 1, ints - 3), kUnits));
    EXPECT(read(unit_of(base, 4), 2)[0] == 0x11111111);
    hipDeviceptr_t start = nullptr;
    size_t bytes = 0;
    HIP_CHECK(hipMemGetAddressRange(&start, &bytes, unit_of(base, 2) + 5));
    EXPECT(start == unit_of(base, 2) && bytes == unit);
    hipPointerAttribute_t attributes{};
    HIP_CHECK(hipPointerGetAttributes(&attributes, unit_of(base, 2) + 5));
    EXPECT(attributes.type == hipMemoryTypeDevice && attributes.device == 0 && attributes.devicePointer == unit_of(base, 2) + 5);
    // One in the middle goes; its neighbours keep what they have.
    HIP_CHECK(hipMemUnmap(unit_of(base, 2), unit));
    EXPECT(read(unit_of(base, 1), 1)[0] == 0x11111111 && read(unit_of(base, 5), 1).size() == 1);
    EXPECT(hipMemset(unit_of(base, 2), 0, 4) == hipErrorInvalidValue);
    (void)hipGetLastError();
    map(unit_of(base, 2), 1, handles[2]);
    EXPECT(read(unit_of(base, 3) - 1, 1)[0] == static_cast<int>(kUnits));
    open(base, kUnits);
    for (size_t i = 0; i < kUnits; i++) {
        HIP_CHECK(hipMemUnmap(unit_of(base, i), unit));
        HIP_CHECK(hipMemRelease(handles[i]));
    }
    HIP_CHECK(hipMemAddressFree(base, kUnits * unit));
}

// The same memory at two places, and what becomes of it when it is unmapped and its handle released in any order.
static void aliases() {
    int *one = reserve(4), *other = reserve(2);
    Handle memory = create(2), same{};
    map(one, 2, memory);
    map(other, 2, memory);
    ramp<<<64, 256>>>(one, 2 * unit / sizeof(int), 3);
    HIP_CHECK(hipDeviceSynchronize());
    EXPECT(is_ramp(read(other, 2 * unit / sizeof(int)), 3));
    HIP_CHECK(hipMemRetainAllocationHandle(&same, other + 77));
    EXPECT(same == memory);
    // 6.4.3 does not count it, and ends the memory one release too early.
    if (check::amds_release() != 6) HIP_CHECK(hipMemRelease(same));
    HIP_CHECK(hipMemUnmap(other, 2 * unit));
    map(unit_of(one, 2), 2, memory);
    HIP_CHECK(hipMemset(unit_of(one, 3), 5, 8));
    EXPECT(read(unit_of(one, 1), 2)[1] == 0x05050505);
    HIP_CHECK(hipMemUnmap(one, 2 * unit));
    HIP_CHECK(hipMemRelease(memory));
    EXPECT(read(unit_of(one, 3), 1)[0] == 0x05050505);
    HIP_CHECK(hipMemUnmap(unit_of(one, 2), 2 * unit));
    HIP_CHECK(hipMemAddressFree(other, 2 * unit));
    HIP_CHECK(hipMemAddressFree(one, 4 * unit));
}

// What is unmapped behind work is there as long as the work needs it. AMD's runtime waits for the null stream only.
static void behind_work() {
    int *base = reserve(2), *kept = reserve(1);
    Handle memory = create(1), more = create(1);
    map(base, 1, memory);
    map(kept, 1, memory);
    map(unit_of(base, 1), 1, more);
    hipStream_t stream = nullptr;
    HIP_CHECK(hipStreamCreateWithFlags(&stream, is_amds() ? hipStreamDefault : hipStreamNonBlocking));
    late<<<1, 1, 0, stream>>>(base + 9, 1234, 2000);
    HIP_CHECK(hipMemUnmap(base, unit));
    late<<<1, 1, 0, stream>>>(unit_of(base, 1), 4321, 2000);
    HIP_CHECK(hipStreamSynchronize(stream));
    EXPECT(read(kept + 9, 1)[0] == 1234);
    EXPECT(read(unit_of(base, 1), 1)[0] == 4321);
    HIP_CHECK(hipStreamDestroy(stream));
    HIP_CHECK(hipMemUnmap(unit_of(base, 1), unit));
    HIP_CHECK(hipMemUnmap(kept, unit));
    HIP_CHECK(hipMemRelease(memory));
    HIP_CHECK(hipMemRelease(more));
    HIP_CHECK(hipMemAddressFree(kept, unit));
    HIP_CHECK(hipMemAddressFree(base, 2 * unit));
}

// Memory counts from its creation to its last mapping; addresses do not. Others may use the device too: one quiet moment is enough.
static void accounting() {
    bool is_right = false;
    check::Rng rng(getpid());
    for (int attempt = 0; attempt < 200 && !is_right; attempt++) {
        // Others that do the same have their pauses at other times.
        if (attempt > 0) usleep(rng.below(10000));
        size_t free_before = 0, free_now = 0, total = 0;
        HIP_CHECK(hipMemGetInfo(&free_before, &total));
        const auto has_taken = [&](size_t bytes) {
            HIP_CHECK(hipMemGetInfo(&free_now, &total));
            return free_before == free_now + bytes;
        };
        int* base = reserve(1 << 12);
        is_right = has_taken(0);
        Handle memory = create(4), too_large{};
        is_right = is_right && has_taken(4 * unit);
        EXPECT_ERROR(hipMemCreate(&too_large, (total / unit + 1) * unit, &properties, 0), hipErrorOutOfMemory);
        map(base, 4, memory);
        HIP_CHECK(hipMemRelease(memory));
        is_right = is_right && has_taken(4 * unit);
        HIP_CHECK(hipMemUnmap(base, 4 * unit));
        HIP_CHECK(hipDeviceSynchronize());
        is_right = is_right && has_taken(0);
        HIP_CHECK(hipMemAddressFree(base, unit << 12));
    }
    EXPECT(is_right);
}

// Memory goes through a file descriptor, as to another process.
static void shared() {
    hipMemAllocationProp shareable = properties;
    shareable.requestedHandleType = hipMemHandleTypePosixFileDescriptor;
    Handle memory{}, imported{}, unshared = create(1);
    HIP_CHECK(hipMemCreate(&memory, unit, &shareable, 0));
    int descriptor = -1;
    HIP_CHECK(hipMemExportToShareableHandle(&descriptor, memory, hipMemHandleTypePosixFileDescriptor, 0));
    EXPECT(descriptor >= 0);
#if HIP_VERSION_MAJOR >= 7
    HIP_CHECK(hipMemImportFromShareableHandle(&imported, reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)), hipMemHandleTypePosixFileDescriptor));
#else
    HIP_CHECK(hipMemImportFromShareableHandle(&imported, &descriptor, hipMemHandleTypePosixFileDescriptor));
#endif
    close(descriptor);
    int *here = reserve(1), *there = reserve(1);
    map(here, 1, memory);
    map(there, 1, imported);
    ramp<<<1, 64>>>(here, 64, 11);
    HIP_CHECK(hipDeviceSynchronize());
    EXPECT(is_ramp(read(there, 64), 11));
    HIP_CHECK(hipMemUnmap(here, unit));
    HIP_CHECK(hipMemRelease(memory));
    EXPECT(is_ramp(read(there, 64), 11));
    HIP_CHECK(hipMemUnmap(there, unit));
    HIP_CHECK(hipMemRelease(imported));
    EXPECT_ERROR(hipMemExportToShareableHandle(nullptr, unshared, hipMemHandleTypePosixFileDescriptor, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemExportToShareableHandle(&descriptor, unshared, hipMemHandleTypePosixFileDescriptor, 1), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemImportFromShareableHandle(nullptr, &descriptor, hipMemHandleTypePosixFileDescriptor), hipErrorInvalidValue);
    if (!is_amds()) {
        EXPECT_ERROR(hipMemExportToShareableHandle(&descriptor, unshared, hipMemHandleTypePosixFileDescriptor, 0), hipErrorInvalidValue);
        int pipes[2] = {-1, -1};
        EXPECT(pipe(pipes) == 0);
        EXPECT_ERROR(hipMemImportFromShareableHandle(&imported, &pipes[0], hipMemHandleTypePosixFileDescriptor), hipErrorInvalidValue);
        close(pipes[0]);
        close(pipes[1]);
    }
    HIP_CHECK(hipMemRelease(unshared));
    HIP_CHECK(hipMemAddressFree(here, unit));
    HIP_CHECK(hipMemAddressFree(there, unit));
}

static void errors() {
    size_t bytes = 0;
    void* at = nullptr;
    Handle handle{};
    EXPECT_ERROR(hipMemGetAllocationGranularity(nullptr, &properties, hipMemAllocationGranularityMinimum), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemGetAllocationGranularity(&bytes, nullptr, hipMemAllocationGranularityMinimum), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemGetAllocationGranularity(&bytes, &properties, static_cast<hipMemAllocationGranularity_flags>(2)), hipErrorInvalidValue);
    for (int wrong = 0; wrong < 3; wrong++) {
        hipMemAllocationProp other = properties;
        if (wrong == 0) other.location.id = 99;
        if (wrong == 1) other.type = hipMemAllocationTypeInvalid;
        if (wrong == 2) other.location.type = hipMemLocationTypeInvalid;
        EXPECT_ERROR(hipMemGetAllocationGranularity(&bytes, &other, hipMemAllocationGranularityMinimum), hipErrorInvalidValue);
        if (wrong > 0) EXPECT_ERROR(hipMemCreate(&handle, unit, &other, 0), hipErrorInvalidValue);
    }
    EXPECT_ERROR(hipMemCreate(nullptr, unit, &properties, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemCreate(&handle, 0, &properties, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemCreate(&handle, unit - 1, &properties, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemCreate(&handle, unit, nullptr, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemCreate(&handle, unit, &properties, 1), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemAddressReserve(nullptr, unit, 0, nullptr, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemAddressReserve(&at, unit, 0, nullptr, 1), hipErrorInvalidValue);
    int* base = reserve(4);
    Handle memory = create(2);
    hipMemAccessDesc access{};
    access.location = properties.location;
    access.flags = hipMemAccessFlagsProtReadWrite;
    EXPECT_ERROR(hipMemMap(nullptr, 2 * unit, 0, memory, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemMap(base, 0, 0, memory, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemMap(base, 2 * unit, unit, memory, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemMap(base, 2 * unit, 0, nullptr, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemMap(base, 2 * unit, 0, memory, 1), hipErrorInvalidValue);
    if (!is_amds()) EXPECT_ERROR(hipMemUnmap(base, 2 * unit), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemSetAccess(base, 2 * unit, &access, 1), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemRetainAllocationHandle(&handle, base), hipErrorInvalidValue);
    unsigned long long flags = 77;
    EXPECT_ERROR(hipMemGetAccess(&flags, &properties.location, base), hipErrorInvalidValue);
    HIP_CHECK(hipMemMap(base, 2 * unit, 0, memory, 0));
    EXPECT_ERROR(hipMemGetAccess(&flags, &properties.location, base), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemSetAccess(nullptr, 2 * unit, &access, 1), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemSetAccess(base, 0, &access, 1), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemSetAccess(base, 2 * unit, nullptr, 1), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemSetAccess(base, 2 * unit, &access, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemSetAccess(base, unit, &access, 1), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemSetAccess(unit_of(base, 1), unit, &access, 1), hipErrorInvalidValue);
    access.location.id = 99;
    EXPECT_ERROR(hipMemSetAccess(base, 2 * unit, &access, 1), hipErrorInvalidValue);
    access.location.id = 0;
    access.flags = static_cast<hipMemAccessFlags>(4);
    EXPECT_ERROR(hipMemSetAccess(base, 2 * unit, &access, 1), hipErrorInvalidValue);
    for (hipMemAccessFlags given : {hipMemAccessFlagsProtReadWrite, hipMemAccessFlagsProtRead, hipMemAccessFlagsProtNone, hipMemAccessFlagsProtReadWrite}) {
        open(base, 2, given);
        HIP_CHECK(hipMemGetAccess(&flags, &properties.location, base));
        EXPECT(flags == static_cast<unsigned long long>(given));
    }
    EXPECT_ERROR(hipMemGetAccess(nullptr, &properties.location, base), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemGetAccess(&flags, nullptr, base), hipErrorInvalidValue);
    if (!is_amds()) EXPECT_ERROR(hipMemUnmap(base, unit), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemUnmap(nullptr, unit), hipErrorInvalidValue);
    hipMemAllocationProp told{};
    HIP_CHECK(hipMemGetAllocationPropertiesFromHandle(&told, memory));
    EXPECT(told.type == properties.type && told.location.type == properties.location.type && told.location.id == 0);
    EXPECT_ERROR(hipMemGetAllocationPropertiesFromHandle(nullptr, memory), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemGetAllocationPropertiesFromHandle(&told, nullptr), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemRelease(nullptr), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemRetainAllocationHandle(nullptr, base), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemAddressFree(nullptr, 4 * unit), hipErrorInvalidValue);
    if (!is_amds()) { // AMD's runtime takes these, and ends the process later
        Handle small = create(1);
        EXPECT_ERROR(hipMemMap(unit_of(base, 2), 2 * unit, 0, small, 0), hipErrorInvalidValue);
        EXPECT_ERROR(hipMemMap(unit_of(base, 1), unit, 0, small, 0), hipErrorInvalidValue);
        EXPECT_ERROR(hipMemMap(unit_of(base, 4), unit, 0, small, 0), hipErrorInvalidValue);
        EXPECT_ERROR(hipMemAddressFree(base, 4 * unit), hipErrorInvalidValue);
        EXPECT_ERROR(hipMemAddressReserve(&at, unit, 3, nullptr, 0), hipErrorInvalidValue);
        EXPECT_ERROR(hipMemAddressReserve(&at, 0, 0, nullptr, 0), hipErrorInvalidValue); // HIP 6: hipErrorOutOfMemory, as for unit + 1
        EXPECT_ERROR(hipMemAddressReserve(&at, unit + 1, 0, nullptr, 0), hipErrorInvalidValue);
        EXPECT_ERROR(hipMemAddressFree(base, 3 * unit), hipErrorInvalidValue);
        EXPECT_ERROR(hipFree(base), hipErrorInvalidValue);
        HIP_CHECK(hipMemRelease(small));
        EXPECT_ERROR(hipMemRelease(small), hipErrorInvalidValue);
        EXPECT_ERROR(hipMemMap(unit_of(base, 2), unit, 0, small, 0), hipErrorInvalidValue);
        void* aligned = nullptr;
        HIP_CHECK(hipMemAddressReserve(&aligned, unit, 64 * unit, nullptr, 0));
        EXPECT(reinterpret_cast<uintptr_t>(aligned) % (64 * unit) == 0);
        HIP_CHECK(hipMemAddressFree(aligned, unit));
        HIP_CHECK(hipMemAddressReserve(&at, unit, 0, aligned, 0));
        EXPECT(at == aligned);
        HIP_CHECK(hipMemAddressFree(at, unit));
    }
    HIP_CHECK(hipMemUnmap(base, 2 * unit));
    HIP_CHECK(hipMemRelease(memory));
    HIP_CHECK(hipMemAddressFree(base, 4 * unit));
    if (!is_amds()) EXPECT_ERROR(hipMemAddressFree(base, 4 * unit), hipErrorInvalidValue);
}

int main() {
    check::begin("virtual_memory");
    int supported = 0;
    HIP_CHECK(hipDeviceGetAttribute(&supported, hipDeviceAttributeVirtualMemoryManagementSupported, 0));
    EXPECT(supported == 1);
    properties.type = hipMemAllocationTypePinned;
    properties.location.type = hipMemLocationTypeDevice;
    HIP_CHECK(hipMemGetAllocationGranularity(&unit, &properties, hipMemAllocationGranularityRecommended));
    EXPECT(unit >= 4096 && (unit & (unit - 1)) == 0);
    if (unit < 65536) unit = 65536;
    grows();
    aliases();
    behind_work();
    accounting();
    shared();
    errors();
    return check::finish();
}
