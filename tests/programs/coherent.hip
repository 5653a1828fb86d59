// Memory that host and kernels have in common while kernels run: a kernel and the host pass a flag to and fro, 10,000 times, through pinned
// and through managed memory. Where they share no memory, the device's attributes say so, and there is nothing to see.
#include "check.h"

static const unsigned kRounds = 10000;

// Answers each odd value of the flag with the next even one, and counts what the host has written beside it.
extern "C" __global__ void answer(unsigned* flag, const unsigned* said, unsigned* heard, unsigned rounds) {
    for (unsigned round = 0; round < rounds; round++) {
        while (__hip_atomic_load(flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM) != 2 * round + 1) __builtin_amdgcn_s_sleep(1);
        heard[round] = *reinterpret_cast<const volatile unsigned*>(said);
        __hip_atomic_store(flag, 2 * round + 2, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
    }
}

// Adds to numbers that the host adds to at the same time.
extern "C" __global__ void add(unsigned* word, unsigned long long* pair, unsigned times) {
    for (unsigned i = 0; i < times; i++) {
        __hip_atomic_fetch_add(word, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
        __hip_atomic_fetch_add(pair, 1ull, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
    }
}

static int attribute(hipDeviceAttribute_t code) {
    int value = -1;
    HIP_CHECK(hipDeviceGetAttribute(&value, code, 0));
    return value;
}

static void pass(const char* what, unsigned* flag, unsigned* said, unsigned* heard) {
    *flag = *said = 0;
    answer<<<1, 1>>>(flag, said, heard, kRounds);
    HIP_CHECK(hipGetLastError());
    unsigned late = 0;
    for (unsigned round = 0; round < kRounds; round++) {
        *said = round * 2654435761u;
        __atomic_store_n(flag, 2 * round + 1, __ATOMIC_RELEASE);
        while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != 2 * round + 2) {}
        late += heard[round] != round * 2654435761u;
    }
    if (late) check::fail("%s: %u of %u rounds were seen late\n", what, late, kRounds);
    HIP_CHECK(hipDeviceSynchronize());
    EXPECT(*flag == 2 * kRounds);
}

int main() {
    check::begin("coherent");
    const bool fine = attribute(hipDeviceAttributeFineGrainSupport) == 1;
    EXPECT(attribute(hipDeviceAttributeHostNativeAtomicSupported) == fine);
    hipDeviceProp_t properties;
    HIP_CHECK(hipGetDeviceProperties(&properties, 0));
    EXPECT(properties.hostNativeAtomicSupported == fine);
    if (!fine) return check::finish();
    std::puts("shared");

    const size_t bytes = 4096 + kRounds * sizeof(unsigned);
    for (unsigned flags : {static_cast<unsigned>(hipHostMallocCoherent), static_cast<unsigned>(hipHostMallocMapped), static_cast<unsigned>(hipHostMallocDefault)}) {
        unsigned* pinned = nullptr;
        HIP_CHECK(hipHostMalloc(reinterpret_cast<void**>(&pinned), bytes, flags));
        pass("pinned memory", pinned, pinned + 64, pinned + 1024);
        HIP_CHECK(hipHostFree(pinned));
    }
    unsigned* managed = nullptr;
    HIP_CHECK(hipMallocManaged(reinterpret_cast<void**>(&managed), bytes));
    pass("managed memory", managed, managed + 64, managed + 1024);

    // Atomics of both sides.
    auto* pair = reinterpret_cast<unsigned long long*>(managed + 2);
    *managed = 0;
    *pair = 0;
    add<<<4, 64>>>(managed, pair, 50);
    for (unsigned i = 0; i < 20000; i++) {
        __atomic_fetch_add(managed, 1u, __ATOMIC_RELAXED);
        __atomic_fetch_add(pair, 1ull, __ATOMIC_RELAXED);
    }
    HIP_CHECK(hipDeviceSynchronize());
    EXPECT(*managed == 4 * 64 * 50 + 20000 && *pair == 4 * 64 * 50 + 20000);
    HIP_CHECK(hipFree(managed));

    // What was freed comes back as zeros, also where addresses come round again.
    for (int round = 0; round < 300; round++) {
        unsigned* words = nullptr;
        HIP_CHECK(hipHostMalloc(reinterpret_cast<void**>(&words), 1 << 16, 0));
        for (int i = 0; i < 1 << 14; i += 512) EXPECT(words[i] == 0);
        std::memset(words, 0xff, 1 << 16);
        HIP_CHECK(hipHostFree(words));
    }

    // A synchronous copy is over when it returns: its source can be changed, its destination is there.
    const size_t n = 1 << 20;
    unsigned *from = nullptr, *to = nullptr;
    HIP_CHECK(hipHostMalloc(reinterpret_cast<void**>(&from), n * 4, 0));
    HIP_CHECK(hipHostMalloc(reinterpret_cast<void**>(&to), n * 4, 0));
    DeviceArray<unsigned> device(n);
    for (unsigned round = 1; round <= 8; round++) {
        std::fill(from, from + n, round);
        HIP_CHECK(hipMemcpy(device.get(), from, n * 4, hipMemcpyHostToDevice));
        std::fill(from, from + n, 0u);
        HIP_CHECK(hipMemcpy(to, device.get(), n * 4, hipMemcpyDeviceToHost));
        EXPECT(std::count(to, to + n, round) == static_cast<long>(n));
        HIP_CHECK(hipMemset(to, 0, n * 4));
        EXPECT(std::count(to, to + n, 0u) == static_cast<long>(n));
    }
    HIP_CHECK(hipHostFree(from));
    HIP_CHECK(hipHostFree(to));
    return check::finish();
}
