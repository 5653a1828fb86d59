// Managed memory: what the program says of it (hipMemAdvise, hipMemPrefetchAsync) and asks for again (hipMemRangeGetAttribute), page by page.
#include "check.h"
#include "runtime.h"

static constexpr size_t kPage = 4096, kSize = 16 * kPage;

static int attribute(const void* memory, size_t size, hipMemRangeAttribute which) {
    int value = 99;
    HIP_CHECK(hipMemRangeGetAttribute(&value, sizeof value, which, memory, size));
    return value;
}

static int read_mostly(const void* memory, size_t size) { return attribute(memory, size, hipMemRangeAttributeReadMostly); }
static int preferred(const void* memory, size_t size) { return attribute(memory, size, hipMemRangeAttributePreferredLocation); }
static int prefetched(const void* memory, size_t size) { return attribute(memory, size, hipMemRangeAttributeLastPrefetchLocation); }
static int coherency(const void* memory, size_t size) { return attribute(memory, size, hipMemRangeAttributeCoherencyMode); }

static std::vector<int> accessed_by(const void* memory, size_t size, size_t count) {
    std::vector<int> devices(count, 99);
    HIP_CHECK(hipMemRangeGetAttribute(devices.data(), count * sizeof(int), hipMemRangeAttributeAccessedBy, memory, size));
    return devices;
}

static void what_is_said(char* m) {
    EXPECT(read_mostly(m, kSize) == 0 && preferred(m, kSize) == hipInvalidDeviceId && prefetched(m, kSize) == hipInvalidDeviceId);
    EXPECT(coherency(m, kSize) == hipMemRangeCoherencyModeFineGrain);
    check::equal("at first", accessed_by(m, kSize, 2), {hipInvalidDeviceId, hipInvalidDeviceId});

    // The device means nothing here.
    HIP_CHECK(hipMemAdvise(m, kSize, hipMemAdviseSetReadMostly, 1000));
    EXPECT(read_mostly(m, kSize) == 1 && read_mostly(m + 5, 1) == 1);
    HIP_CHECK(hipMemAdvise(m, kSize, hipMemAdviseUnsetReadMostly, -2));
    EXPECT(read_mostly(m, kSize) == 0);

    HIP_CHECK(hipMemAdvise(m, kSize, hipMemAdviseSetPreferredLocation, 0));
    EXPECT(preferred(m, kSize) == 0);
    HIP_CHECK(hipMemAdvise(m, kSize, hipMemAdviseSetPreferredLocation, hipCpuDeviceId));
    EXPECT(preferred(m, kSize) == hipCpuDeviceId);
    HIP_CHECK(hipMemAdvise(m, kSize, hipMemAdviseUnsetPreferredLocation, 0));
    EXPECT(preferred(m, kSize) == hipInvalidDeviceId);

    HIP_CHECK(hipMemAdvise(m, kSize, hipMemAdviseSetAccessedBy, hipCpuDeviceId));
    HIP_CHECK(hipMemAdvise(m, kSize, hipMemAdviseSetAccessedBy, 0));
    HIP_CHECK(hipMemAdvise(m, kSize, hipMemAdviseSetAccessedBy, 0));
    check::equal("device and host", accessed_by(m, kSize, 3), {0, hipCpuDeviceId, hipInvalidDeviceId});
    check::equal("as many as fit", accessed_by(m, kSize, 1), {0});
    HIP_CHECK(hipMemAdvise(m, kSize, hipMemAdviseUnsetAccessedBy, 0));
    check::equal("the host", accessed_by(m, kSize, 2), {hipCpuDeviceId, hipInvalidDeviceId});

    HIP_CHECK(hipMemAdvise(m, kSize, hipMemAdviseSetCoarseGrain, 0));
    EXPECT(coherency(m, kSize) == hipMemRangeCoherencyModeCoarseGrain);
    HIP_CHECK(hipMemAdvise(m, kSize, hipMemAdviseUnsetCoarseGrain, 0));
    EXPECT(coherency(m, kSize) == hipMemRangeCoherencyModeFineGrain);

    HIP_CHECK(hipMemPrefetchAsync(m, kSize, 0, nullptr));
    HIP_CHECK(hipDeviceSynchronize());
    EXPECT(prefetched(m, kSize) == 0);
    HIP_CHECK(hipMemPrefetchAsync(m, kSize, hipCpuDeviceId, nullptr));
    HIP_CHECK(hipDeviceSynchronize());
    EXPECT(prefetched(m, kSize) == hipCpuDeviceId);
}

// Advice holds for whole pages. Of a range is told what holds for all of it.
static void pages(char* m) {
    HIP_CHECK(hipMemAdvise(m + 10, 100, hipMemAdviseSetReadMostly, 0));
    EXPECT(read_mostly(m, kPage) == 1 && read_mostly(m, kPage + 1) == 0 && read_mostly(m + kPage, kPage) == 0);
    HIP_CHECK(hipMemAdvise(m + kPage - 1, 2, hipMemAdviseSetCoarseGrain, 0));
    EXPECT(coherency(m, 2 * kPage) == hipMemRangeCoherencyModeCoarseGrain);
    EXPECT(coherency(m, 3 * kPage) == hipMemRangeCoherencyModeIndeterminate);
    EXPECT(coherency(m + 2 * kPage, kPage) == hipMemRangeCoherencyModeFineGrain);
    HIP_CHECK(hipMemAdvise(m, kSize, hipMemAdviseSetPreferredLocation, 0));
    HIP_CHECK(hipMemAdvise(m + kPage, kPage, hipMemAdviseSetPreferredLocation, hipCpuDeviceId));
    EXPECT(preferred(m, kPage) == 0 && preferred(m + kPage, kPage) == hipCpuDeviceId && preferred(m + 2 * kPage, kSize - 2 * kPage) == 0);
    EXPECT(preferred(m, kSize) == hipInvalidDeviceId);
    HIP_CHECK(hipMemAdvise(m + 3 * kPage, kPage, hipMemAdviseSetAccessedBy, 0));
    check::equal("some pages", accessed_by(m, kSize, 1), {hipCpuDeviceId});
    check::equal("those pages", accessed_by(m + 3 * kPage, kPage, 1), {0});

    int one = 99, two[2] = {99, 99};
    void* data[] = {&one, two};
    size_t sizes[] = {sizeof one, sizeof two};
    hipMemRangeAttribute which[] = {hipMemRangeAttributeReadMostly, hipMemRangeAttributeAccessedBy};
    HIP_CHECK(hipMemRangeGetAttributes(data, sizes, which, 2, m, kPage));
    EXPECT(one == 1 && two[0] == hipCpuDeviceId && two[1] == hipInvalidDeviceId);
    one = two[0] = 99;
    sizes[1] = 6;
    EXPECT_ERROR(hipMemRangeGetAttributes(data, sizes, which, 2, m, kPage), hipErrorInvalidValue);
    // None is written if one cannot be; AMD's runtime writes those before it.
    EXPECT(two[0] == 99 && (one == 99 || check::amds_release() > 0));
    sizes[1] = sizeof two;
    EXPECT_ERROR(hipMemRangeGetAttributes(nullptr, sizes, which, 2, m, kPage), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemRangeGetAttributes(data, nullptr, which, 2, m, kPage), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemRangeGetAttributes(data, sizes, nullptr, 2, m, kPage), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemRangeGetAttributes(data, sizes, which, 0, m, kPage), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemRangeGetAttributes(data, sizes, which, 2, nullptr, kPage), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemRangeGetAttributes(data, sizes, which, 2, m, 0), hipErrorInvalidValue);
}

static void errors(char* m) {
    int value = 99;
    const hipMemRangeAttribute mostly = hipMemRangeAttributeReadMostly;
    char *device = nullptr, *pinned = nullptr;
    HIP_CHECK(hipMalloc(reinterpret_cast<void**>(&device), kSize));
    HIP_CHECK(hipHostMalloc(reinterpret_cast<void**>(&pinned), kSize, 0));
    EXPECT_ERROR(hipMemRangeGetAttribute(nullptr, 4, mostly, m, kSize), hipErrorInvalidValue);
    for (size_t size : {0, 2, 8}) EXPECT_ERROR(hipMemRangeGetAttribute(&value, size, mostly, m, kSize), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemRangeGetAttribute(&value, 6, hipMemRangeAttributeAccessedBy, m, kSize), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemRangeGetAttribute(&value, 4, static_cast<hipMemRangeAttribute>(77), m, kSize), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemRangeGetAttribute(&value, 4, mostly, nullptr, kSize), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemRangeGetAttribute(&value, 4, mostly, m, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemRangeGetAttribute(&value, 4, mostly, m, size_t{1} << 40), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemRangeGetAttribute(&value, 4, mostly, device, kSize), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemRangeGetAttribute(&value, 4, mostly, pinned, kSize), hipErrorInvalidValue);
    EXPECT(value == 99);

    EXPECT_ERROR(hipMemAdvise(nullptr, kSize, hipMemAdviseSetReadMostly, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemAdvise(m, 0, hipMemAdviseSetReadMostly, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemAdvise(m, kSize + 1, hipMemAdviseSetReadMostly, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemAdvise(m, kSize, static_cast<hipMemoryAdvise>(77), 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemAdvise(device, kSize, hipMemAdviseSetReadMostly, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemAdvise(pinned, kSize, hipMemAdviseSetReadMostly, 0), hipErrorInvalidValue);
    for (auto advice : {hipMemAdviseSetPreferredLocation, hipMemAdviseUnsetPreferredLocation, hipMemAdviseSetAccessedBy,
                        hipMemAdviseUnsetAccessedBy, hipMemAdviseSetCoarseGrain, hipMemAdviseUnsetCoarseGrain})
        for (int location : {1000, -2}) EXPECT_ERROR(hipMemAdvise(m, kSize, advice, location), hipErrorInvalidDevice);

    EXPECT_ERROR(hipMemPrefetchAsync(nullptr, kSize, 0, nullptr), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemPrefetchAsync(m, 0, 0, nullptr), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemPrefetchAsync(m, kSize + 1, 0, nullptr), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemPrefetchAsync(m, kSize, 1000, nullptr), hipErrorInvalidDevice);
    EXPECT_ERROR(hipMemPrefetchAsync(m, kSize, hipInvalidDeviceId, nullptr), hipErrorInvalidDevice);
    HIP_CHECK(hipMemPrefetchAsync(device, kSize, 0, nullptr));
    HIP_CHECK(hipMemPrefetchAsync(pinned, kSize, 0, nullptr));
    EXPECT_ERROR(hipMemPrefetchAsync(device, kSize + 1, 0, nullptr), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemPrefetchAsync(pinned, kSize + 1, 0, nullptr), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemPrefetchAsync(&value, sizeof value, 0, nullptr), hipErrorNotSupported);
    // AMD's runtime takes any memory of the process for managed memory.
    if (check::amds_release() == 0) {
        EXPECT_ERROR(hipMemRangeGetAttribute(&value, 4, mostly, &value, sizeof value), hipErrorInvalidValue);
        EXPECT_ERROR(hipMemRangeGetAttribute(&value, 4, mostly, m, kSize + 1), hipErrorInvalidValue);
        EXPECT_ERROR(hipMemAdvise(&value, sizeof value, hipMemAdviseSetReadMostly, 0), hipErrorInvalidValue);
    }

    // A length is that of the whole allocation.
    hipStream_t stream;
    HIP_CHECK(hipStreamCreate(&stream));
    for (size_t length : {size_t{0}, kSize}) {
        for (auto flags : {hipMemAttachGlobal, hipMemAttachHost, hipMemAttachSingle}) HIP_CHECK(hipStreamAttachMemAsync(stream, m, length, flags));
        HIP_CHECK(hipStreamAttachMemAsync(stream, pinned, length, hipMemAttachSingle));
    }
    HIP_CHECK(hipStreamAttachMemAsync(stream, m + kPage, 0, hipMemAttachSingle));
    HIP_CHECK(hipStreamAttachMemAsync(hipStreamPerThread, m, 0, hipMemAttachSingle));
    HIP_CHECK(hipStreamAttachMemAsync(nullptr, m, 0, hipMemAttachGlobal));
    for (size_t length : {size_t{1}, kSize - 1, kSize + 1}) EXPECT_ERROR(hipStreamAttachMemAsync(stream, m, length, hipMemAttachSingle), hipErrorInvalidValue);
    EXPECT_ERROR(hipStreamAttachMemAsync(stream, pinned, 7, hipMemAttachSingle), hipErrorInvalidValue);
    EXPECT_ERROR(hipStreamAttachMemAsync(stream, nullptr, 0, hipMemAttachSingle), hipErrorInvalidValue);
    EXPECT_ERROR(hipStreamAttachMemAsync(stream, m, kSize, 7), hipErrorInvalidValue);
    EXPECT_ERROR(hipStreamAttachMemAsync(nullptr, m, kSize, hipMemAttachSingle), hipErrorInvalidValue);
    EXPECT_ERROR(hipStreamAttachMemAsync(stream, &value, sizeof value, hipMemAttachSingle), hipErrorInvalidValue);
    HIP_CHECK(hipStreamDestroy(stream));
    HIP_CHECK(hipHostFree(pinned));
    HIP_CHECK(hipFree(device));
}

int main() {
    check::begin("managed_advice");
    // What was said of memory ends with it, but in AMD's runtime 6.
    for (int round = 0; round < (check::amds_release() == 6 ? 1 : 2); round++) {
        char* managed = nullptr;
        HIP_CHECK(hipMallocManaged(reinterpret_cast<void**>(&managed), kSize));
        what_is_said(managed);
        pages(managed);
        errors(managed);
        HIP_CHECK(hipFree(managed));
    }
    return check::finish();
}
