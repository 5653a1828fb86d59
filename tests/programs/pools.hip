// Memory pools: what they hold and what they give back, in numbers; memory that is given out again; pools that end before their memory.
#include <thread>

#include "check.h"
#include "runtime.h"

static const size_t kMegabyte = 1 << 20, kPiece = 32 * kMegabyte;

static unsigned long long number(hipMemPool_t pool, hipMemPoolAttr attribute) {
    unsigned long long value = ~0ull;
    HIP_CHECK(hipMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

static void numbers(const char* what, hipMemPool_t pool, std::vector<unsigned long long> wanted) {
    std::vector<unsigned long long> values;
    for (hipMemPoolAttr attribute : {hipMemPoolAttrReservedMemCurrent, hipMemPoolAttrReservedMemHigh, hipMemPoolAttrUsedMemCurrent, hipMemPoolAttrUsedMemHigh})
        values.push_back(number(pool, attribute));
    // How much memory a pool takes at a time is not said: AMD's runtime 7 takes pieces of 32 MiB, which it holds or gives back as a whole.
    for (int reserved : {0, 1})
        if (values[reserved] % kPiece == 0 && values[reserved] >= values[reserved + 2]) values[reserved] = wanted[reserved];
    check::equal(what, values, wanted);
}

static hipMemPool_t create(int device, size_t max_size) {
    hipMemPoolProps properties = {};
    properties.allocType = hipMemAllocationTypePinned;
    properties.handleTypes = hipMemHandleTypeNone;
    properties.location = {hipMemLocationTypeDevice, device};
    properties.maxSize = max_size;
    hipMemPool_t pool = nullptr;
    HIP_CHECK(hipMemPoolCreate(&pool, &properties));
    return pool;
}

static void* take(hipMemPool_t pool, size_t size, hipStream_t stream) {
    void* memory = nullptr;
    HIP_CHECK(hipMallocFromPoolAsync(&memory, size, pool, stream));
    return memory;
}

// What is freed serves the same stream again at once, and others when the work before the free is done; it stays with the pool until a
// synchronization, also where the pool is to hold nothing.
static void freed_memory(hipStream_t stream) {
    hipStream_t other;
    HIP_CHECK(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
    hipMemPool_t pool = create(0, 0);
    void *freed = take(pool, kMegabyte, stream), *kept = take(pool, 4096, stream);
    HIP_CHECK(hipMemsetAsync(kept, 0x77, 4096, stream));
    HIP_CHECK(hipMemsetAsync(freed, 1, kMegabyte, stream));
    HIP_CHECK(hipFreeAsync(freed, stream));
    const unsigned long long both = kMegabyte + 4096;
    numbers("freed", pool, {both, both, 4096, both});
    EXPECT(take(pool, kMegabyte, stream) == freed);
    numbers("taken again", pool, {both, both, both, both});
    HIP_CHECK(hipFreeAsync(freed, stream));
    while (hipStreamQuery(stream) == hipErrorNotReady) std::this_thread::yield();
    EXPECT(take(pool, kMegabyte, other) == freed);
    HIP_CHECK(hipFreeAsync(freed, other));
    numbers("freed by the other", pool, {both, both, 4096, both});
    HIP_CHECK(hipStreamSynchronize(other));
    numbers("synchronized", pool, {4096, both, 4096, both});
    std::vector<unsigned char> bytes(4096);
    HIP_CHECK(hipMemcpyAsync(bytes.data(), kept, bytes.size(), hipMemcpyDeviceToHost, stream));
    HIP_CHECK(hipStreamSynchronize(stream));
    check::equal("kept", bytes, std::vector<unsigned char>(4096, 0x77));
    HIP_CHECK(hipFreeAsync(kept, stream));
    HIP_CHECK(hipMemPoolDestroy(pool));
    HIP_CHECK(hipStreamDestroy(other));
}

int main() {
    check::begin("pools");
    int supported = 0;
    HIP_CHECK(hipDeviceGetAttribute(&supported, hipDeviceAttributeMemoryPoolsSupported, 0));
    EXPECT(supported == 1);
    hipStream_t stream;
    HIP_CHECK(hipStreamCreate(&stream));

    hipMemPool_t pool = create(0, 0);
    unsigned long long threshold = 8 * kMegabyte;
    HIP_CHECK(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &threshold));
    EXPECT(number(pool, hipMemPoolAttrReleaseThreshold) == threshold);
    int reuse = 0;
    HIP_CHECK(hipMemPoolSetAttribute(pool, hipMemPoolReuseAllowOpportunistic, &reuse));
    reuse = 7;
    HIP_CHECK(hipMemPoolGetAttribute(pool, hipMemPoolReuseAllowOpportunistic, &reuse));
    EXPECT(reuse == 0);

    hipMemLocation here = {hipMemLocationTypeDevice, 0};
    hipMemAccessDesc access = {here, hipMemAccessFlagsProtReadWrite};
    HIP_CHECK(hipMemPoolSetAccess(pool, &access, 1));
    access.flags = hipMemAccessFlagsProtNone;
    EXPECT_ERROR(hipMemPoolSetAccess(pool, &access, 1), hipErrorInvalidDevice);
    hipMemAccessFlags granted = hipMemAccessFlagsProtNone;
    HIP_CHECK(hipMemPoolGetAccess(&granted, pool, &here));
    EXPECT(granted == hipMemAccessFlagsProtReadWrite);

    // The same memory serves every round, and what was written in one is what is read in it.
    void* first = nullptr;
    std::vector<unsigned> values(kMegabyte / sizeof(unsigned)), results(values.size());
    for (unsigned round = 0; round < 4; round++) {
        void* memory = take(pool, kMegabyte, stream);
        if (round == 0) first = memory;
        EXPECT(memory == first);
        for (size_t i = 0; i < values.size(); i++) values[i] = static_cast<unsigned>(i) * (round + 1);
        HIP_CHECK(hipMemcpyAsync(memory, values.data(), kMegabyte, hipMemcpyHostToDevice, stream));
        HIP_CHECK(hipMemcpyAsync(results.data(), memory, kMegabyte, hipMemcpyDeviceToHost, stream));
        HIP_CHECK(hipFreeAsync(memory, stream));
        HIP_CHECK(hipStreamSynchronize(stream));
        check::equal("round", results, values);
    }
    numbers("held", pool, {kMegabyte, kMegabyte, 0, kMegabyte});
    HIP_CHECK(hipMemPoolTrimTo(pool, 0));
    numbers("trimmed", pool, {0, kMegabyte, 0, kMegabyte});
    unsigned long long zero = 0;
    HIP_CHECK(hipMemPoolSetAttribute(pool, hipMemPoolAttrReservedMemHigh, &zero));
    HIP_CHECK(hipMemPoolSetAttribute(pool, hipMemPoolAttrUsedMemHigh, &zero));
    numbers("from now on", pool, {0, 0, 0, 0});

    // hipMallocAsync takes from the current pool, which is the default one until another is set.
    hipMemPool_t standard = nullptr, current = nullptr;
    HIP_CHECK(hipDeviceGetDefaultMemPool(&standard, 0));
    HIP_CHECK(hipDeviceGetMemPool(&current, 0));
    EXPECT(standard != nullptr && current == standard);
    HIP_CHECK(hipDeviceSetMemPool(0, pool));
    HIP_CHECK(hipDeviceGetMemPool(&current, 0));
    EXPECT(current == pool);
    void* memory = nullptr;
    HIP_CHECK(hipMallocAsync(&memory, 2 * kMegabyte, stream));
    hipMemPool_t owner = nullptr;
    if (check::amds_release() > 0) { // it does not know the attribute
        EXPECT_ERROR(hipPointerGetAttribute(&owner, HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, memory), hipErrorNotSupported);
    } else {
        HIP_CHECK(hipPointerGetAttribute(&owner, HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, memory));
        EXPECT(owner == pool);
    }
    numbers("current", pool, {2 * kMegabyte, 2 * kMegabyte, 2 * kMegabyte, 2 * kMegabyte});

    // What is allocated outlives its pool.
    HIP_CHECK(hipMemsetAsync(memory, 0x5a, 2 * kMegabyte, stream));
    HIP_CHECK(hipMemPoolDestroy(pool));
    // AMD's runtime takes the handle as long as there is memory, and then ends that with the pool.
    if (check::amds_release() == 0) EXPECT_ERROR(hipMemPoolDestroy(pool), hipErrorInvalidValue);
    EXPECT_ERROR(hipMemPoolDestroy(standard), hipErrorInvalidValue);
    HIP_CHECK(hipMemcpyAsync(results.data(), memory, kMegabyte, hipMemcpyDeviceToHost, stream));
    HIP_CHECK(hipStreamSynchronize(stream));
    check::equal("survivor", results, std::vector<unsigned>(results.size(), 0x5a5a5a5a));
    HIP_CHECK(hipFreeAsync(memory, stream));
    HIP_CHECK(hipDeviceGetMemPool(&current, 0));
    EXPECT(current == standard);

    // A pool with a limit.
    hipMemPool_t small = create(0, kMegabyte);
    void* all = take(small, kMegabyte, stream);
    EXPECT_ERROR(hipMallocFromPoolAsync(&memory, kMegabyte, small, stream), hipErrorOutOfMemory);
    HIP_CHECK(hipFreeAsync(all, stream));
    all = take(small, kMegabyte, stream);
    HIP_CHECK(hipFree(all));
    HIP_CHECK(hipMemPoolTrimTo(small, 0)); // hipFree may have left it with the pool
    numbers("freed", small, {0, kMegabyte, 0, kMegabyte});
    HIP_CHECK(hipMemPoolDestroy(small));
    EXPECT_ERROR(hipMemPoolGetAttribute(standard, static_cast<hipMemPoolAttr>(99), &zero), hipErrorInvalidValue);
    EXPECT_ERROR(hipMallocFromPoolAsync(nullptr, 1, standard, stream), hipErrorInvalidValue);
    freed_memory(stream);
    HIP_CHECK(hipStreamDestroy(stream));
    return check::finish();
}
