// Pinned host memory as a staging area: hipHostMalloc, hipHostRegister, copies from and to it, what pointers are said to be.
#include "check.h"
#include "runtime.h"

extern "C" __global__ void negate(int* data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = -data[i];
}

static void through(int* staging, size_t n, const char* what, check::Rng& rng) {
    hipStream_t stream;
    HIP_CHECK(hipStreamCreate(&stream));
    DeviceArray<int> data(n);
    std::vector<int> want(n), got(n);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < n; i++) {
            staging[i] = static_cast<int>(rng.u32() >> 1);
            want[i] = -staging[i];
        }
        HIP_CHECK(hipMemcpyAsync(data.get(), staging, n * sizeof(int), hipMemcpyHostToDevice, stream));
        negate<<<static_cast<unsigned>((n + 255) / 256), 256, 0, stream>>>(data.get(), static_cast<int>(n));
        HIP_CHECK(hipMemcpyAsync(staging, data.get(), n * sizeof(int), hipMemcpyDeviceToHost, stream));
        HIP_CHECK(hipStreamSynchronize(stream));
        std::copy(staging, staging + n, got.begin());
        check::equal(what, got, want);
    }
    HIP_CHECK(hipStreamDestroy(stream));
}

// The attribute that makes operations on memory wait, which otherwise need not.
static void synchronous() {
    const hipPointer_attribute wait = HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS;
    const int n = 1 << 20;
    DeviceArray<int> data(n), other(n);
    data.fill_bytes(0);
    other.fill_bytes(0);
    int* pinned = nullptr;
    HIP_CHECK(hipHostMalloc(reinterpret_cast<void**>(&pinned), 4096, 0));
    auto waits = [&](void* memory) {
        int value = 99;
        HIP_CHECK(hipPointerGetAttribute(&value, wait, static_cast<hipDeviceptr_t>(memory)));
        return value;
    };
    EXPECT(waits(data.get()) == 0 && waits(pinned) == 0);
    unsigned on = 1, off = 0, neither = 7;
    HIP_CHECK(hipPointerSetAttribute(&on, wait, static_cast<hipDeviceptr_t>(data.get() + 100)));
    HIP_CHECK(hipPointerSetAttribute(&on, wait, pinned + 7));
    EXPECT(waits(data.get()) == 1 && waits(pinned) == 1 && waits(other.get()) == 0);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 5; i++) negate<<<n / 256, 256>>>(other.get(), n);
        HIP_CHECK(round == 0   ? hipMemset(data.get(), 1, n)
                  : round == 1 ? hipMemcpy(data.get(), other.get(), n * sizeof(int), hipMemcpyDeviceToDevice)
                               : hipMemcpy(other.get(), data.get(), n * sizeof(int), hipMemcpyDeviceToDevice));
        // AMD's runtime keeps the attribute, and does not wait.
        if (check::amds_release() == 0) EXPECT_ERROR(hipStreamQuery(nullptr), hipSuccess);
    }
    HIP_CHECK(hipPointerSetAttribute(&off, wait, data.get()));
    EXPECT(waits(data.get()) == 0);
    EXPECT_ERROR(hipPointerSetAttribute(nullptr, wait, data.get()), hipErrorInvalidValue);
    EXPECT_ERROR(hipPointerSetAttribute(&on, wait, nullptr), hipErrorInvalidValue);
    EXPECT_ERROR(hipPointerSetAttribute(&neither, wait, data.get()), hipErrorInvalidValue);
    EXPECT_ERROR(hipPointerSetAttribute(&on, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, data.get()), hipErrorInvalidValue);
    EXPECT_ERROR(hipPointerSetAttribute(&on, static_cast<hipPointer_attribute>(99), data.get()), hipErrorInvalidValue);
    EXPECT_ERROR(hipPointerSetAttribute(&on, wait, &on), hipErrorInvalidDevicePointer);
    HIP_CHECK(hipHostFree(pinned));
}

int main() {
    check::begin("host_memory");
    check::Rng rng(35);
    const size_t n = 5000;
    for (unsigned flags : {static_cast<unsigned>(hipHostMallocDefault), static_cast<unsigned>(hipHostMallocPortable), static_cast<unsigned>(hipHostMallocWriteCombined)}) {
        int* staging = nullptr;
        HIP_CHECK(hipHostMalloc(reinterpret_cast<void**>(&staging), n * sizeof(int), flags));
        EXPECT(staging != nullptr && reinterpret_cast<uintptr_t>(staging) % 64 == 0);
        std::memset(staging, 0, n * sizeof(int));
        through(staging, n, "hipHostMalloc", rng);
        through(staging + 1000, 3001, "a part of it", rng);
        HIP_CHECK(hipHostFree(staging));
    }
    {
        std::vector<int> ordinary(n);
        HIP_CHECK(hipHostRegister(ordinary.data(), n * sizeof(int), hipHostRegisterDefault));
        through(ordinary.data(), n, "hipHostRegister", rng);
        HIP_CHECK(hipHostUnregister(ordinary.data()));
        through(ordinary.data(), n, "after hipHostUnregister", rng);
    }
    {
        // Host to host between pinned areas, and hipMemcpyDefault with them.
        int *a = nullptr, *b = nullptr;
        HIP_CHECK(hipHostMalloc(reinterpret_cast<void**>(&a), 4096, hipHostMallocDefault));
        HIP_CHECK(hipHostMalloc(reinterpret_cast<void**>(&b), 4096, hipHostMallocDefault));
        for (int i = 0; i < 1024; i++) a[i] = i * 3;
        HIP_CHECK(hipMemcpy(b, a, 4096, hipMemcpyHostToHost));
        EXPECT(std::memcmp(a, b, 4096) == 0);
        DeviceArray<int> data(1024);
        std::memset(b, 0, 4096);
        HIP_CHECK(hipMemcpy(data.get(), a, 4096, hipMemcpyDefault));
        HIP_CHECK(hipMemcpy(b, data.get(), 4096, hipMemcpyDefault));
        EXPECT(std::memcmp(a, b, 4096) == 0);

        hipPointerAttribute_t of_device = {}, of_host = {};
        HIP_CHECK(hipPointerGetAttributes(&of_device, data.get() + 5));
        EXPECT(of_device.type == hipMemoryTypeDevice && of_device.device == 0);
        EXPECT(of_device.devicePointer == data.get() + 5);
        HIP_CHECK(hipPointerGetAttributes(&of_host, a + 7));
        EXPECT(of_host.type == hipMemoryTypeHost && of_host.hostPointer == a + 7);
        HIP_CHECK(hipHostFree(a));
        HIP_CHECK(hipHostFree(b));
    }
    synchronous();
    {
        void* nothing = &rng;
        HIP_CHECK(hipHostMalloc(&nothing, 0, 0));
        EXPECT(nothing == nullptr);
        HIP_CHECK(hipHostFree(nullptr));
    }
    return check::finish();
}
