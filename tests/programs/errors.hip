// Every kind of error on purpose: the code, that hipPeekAtLastError keeps it, that hipGetLastError reports it once, and that the program can go on.
#include "check.h"
#include "runtime.h"

extern "C" __global__ void set_one(int* out) { out[blockIdx.x * blockDim.x + threadIdx.x] = 1; }
extern "C" __global__ void __launch_bounds__(64) at_most_64(int* out) { out[threadIdx.x] = 2; }
__device__ int variable[10];

// The call gives this error; the thread's last error is the same, once.
#define ERROR_IS(call, wanted)                                 \
    do {                                                       \
        EXPECT_ERROR(call, wanted);                            \
        EXPECT_ERROR(hipPeekAtLastError(), wanted);            \
        EXPECT_ERROR(hipPeekAtLastError(), wanted);            \
        EXPECT_ERROR(hipGetLastError(), wanted);               \
        EXPECT_ERROR(hipGetLastError(), hipSuccess);           \
        EXPECT_ERROR(hipPeekAtLastError(), hipSuccess);        \
    } while (0)

// Releases of the library differ in the code.
#define ERROR_IS_ONE_OF(call, one, other)                                      \
    do {                                                                       \
        hipError_t got = (call);                                               \
        EXPECT(got == (one) || got == (other));                                \
        EXPECT_ERROR(hipGetLastError(), got);                                  \
        EXPECT_ERROR(hipGetLastError(), hipSuccess);                           \
    } while (0)

// After a launch with <<<>>>, which returns nothing.
#define LAUNCH_ERROR_IS(launch, one, other)                       \
    do {                                                          \
        launch;                                                   \
        hipError_t got = hipPeekAtLastError();                    \
        EXPECT(got == (one) || got == (other));                   \
        EXPECT_ERROR(hipGetLastError(), got);                     \
        EXPECT_ERROR(hipGetLastError(), hipSuccess);              \
    } while (0)

static hipError_t launch(dim3 grid, dim3 block, size_t lds, int* out) {
    void* arguments[] = {&out};
    return hipLaunchKernel(reinterpret_cast<const void*>(set_one), grid, block, arguments, lds, nullptr);
}

static void memory() {
    void* p = nullptr;
    ERROR_IS(hipMalloc(static_cast<void**>(nullptr), 16), hipErrorInvalidValue);
    ERROR_IS(hipMalloc(&p, size_t{1} << 60), hipErrorOutOfMemory);
    ERROR_IS(hipHostMalloc(static_cast<void**>(nullptr), 16, 0), hipErrorInvalidValue);
    HIP_CHECK(hipMalloc(&p, 0));
    EXPECT(p == nullptr);
    HIP_CHECK(hipFree(nullptr));

    char host[64] = {};
    char* device = nullptr;
    HIP_CHECK(hipMalloc(reinterpret_cast<void**>(&device), 64));
    ERROR_IS(hipMemcpy(nullptr, host, 16, hipMemcpyHostToDevice), hipErrorInvalidValue);
    ERROR_IS(hipMemcpy(device, nullptr, 16, hipMemcpyHostToDevice), hipErrorInvalidValue);
    ERROR_IS(hipMemcpy(device, host, 16, static_cast<hipMemcpyKind>(77)), hipErrorInvalidMemcpyDirection);
    std::vector<char> large(1 << 20);
    ERROR_IS(hipMemcpy(device, large.data(), large.size(), hipMemcpyHostToDevice), hipErrorInvalidValue);
    ERROR_IS(hipMemcpy(large.data(), device, large.size(), hipMemcpyDeviceToHost), hipErrorInvalidValue);
    ERROR_IS(hipMemcpyAsync(device + 60, host, 64, hipMemcpyHostToDevice, nullptr), hipErrorInvalidValue);
    ERROR_IS(hipMemset(nullptr, 0, 16), hipErrorInvalidValue);
    ERROR_IS(hipMemset(device, 0, 1 << 20), hipErrorInvalidValue);
    ERROR_IS(hipMemcpy2D(device, 4, host, 8, 8, 2, hipMemcpyHostToDevice), hipErrorInvalidPitchValue); // rows overlap
    // AMD's runtime frees the whole allocation.
    if (check::amds_release() == 0) ERROR_IS(hipFree(device + 1), hipErrorInvalidValue);
    ERROR_IS(hipFree(host), hipErrorInvalidValue);
    HIP_CHECK(hipFree(device));
    ERROR_IS(hipFree(device), hipErrorInvalidValue); // again
    ERROR_IS(hipHostFree(host), hipErrorInvalidValue);
    ERROR_IS(hipHostRegister(nullptr, 64, 0), hipErrorInvalidValue);
    ERROR_IS(hipHostUnregister(host), hipErrorHostMemoryNotRegistered);
    HIP_CHECK(hipMemGetInfo(nullptr, nullptr));

    int value = 0;
    ERROR_IS(hipMemcpyToSymbol(&value, &value, sizeof value), hipErrorInvalidSymbol);
    ERROR_IS(hipMemcpyToSymbol(HIP_SYMBOL(variable), large.data(), 44), hipErrorInvalidValue); // 4 bytes too many
    ERROR_IS(hipGetSymbolAddress(&p, &value), hipErrorInvalidSymbol);
}

static void devices() {
    int value = 0;
    hipDeviceProp_t properties;
    ERROR_IS(hipGetDeviceCount(nullptr), hipErrorInvalidValue);
    ERROR_IS(hipGetDevice(nullptr), hipErrorInvalidValue);
    ERROR_IS(hipSetDevice(-1), hipErrorInvalidDevice);
    ERROR_IS(hipSetDevice(1000), hipErrorInvalidDevice);
    HIP_CHECK(hipGetDevice(&value)); // still the old one
    EXPECT(value == 0);
    ERROR_IS(hipGetDeviceProperties(nullptr, 0), hipErrorInvalidValue);
    ERROR_IS(hipGetDeviceProperties(&properties, 1000), hipErrorInvalidDevice);
    ERROR_IS(hipDeviceGetAttribute(nullptr, hipDeviceAttributeWarpSize, 0), hipErrorInvalidValue);
    ERROR_IS(hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, 1000), hipErrorInvalidDevice);
    ERROR_IS(hipDeviceGetAttribute(&value, static_cast<hipDeviceAttribute_t>(9999999), 0), hipErrorInvalidValue);
    ERROR_IS(hipDeviceGet(&value, 1000), hipErrorInvalidDevice);
    uint32_t link = 99, hops = 99;
    ERROR_IS(hipExtGetLinkTypeAndHopCount(0, 0, &link, &hops), hipErrorInvalidValue);
    ERROR_IS(hipExtGetLinkTypeAndHopCount(-1, 0, &link, &hops), hipErrorInvalidValue);
    ERROR_IS(hipExtGetLinkTypeAndHopCount(0, 1000, nullptr, &hops), hipErrorInvalidValue);
    ERROR_IS(hipExtGetLinkTypeAndHopCount(0, 1000, &link, nullptr), hipErrorInvalidValue);
    ERROR_IS(hipExtGetLinkTypeAndHopCount(0, 1000, &link, &hops), hipErrorInvalidDevice);
    ERROR_IS(hipExtGetLinkTypeAndHopCount(1000, 0, &link, &hops), hipErrorInvalidDevice);
    EXPECT(link == 99 && hops == 99);
}

static void streams_and_events() {
    hipStream_t stream = nullptr;
    hipEvent_t a = nullptr, b = nullptr, untimed = nullptr;
    float ms = 0;
    ERROR_IS(hipStreamCreate(nullptr), hipErrorInvalidValue);
    ERROR_IS(hipStreamCreateWithFlags(&stream, 12345), hipErrorInvalidValue);
    ERROR_IS(hipStreamDestroy(nullptr), hipErrorInvalidHandle);
    ERROR_IS(hipStreamWaitEvent(nullptr, nullptr, 0), hipErrorInvalidHandle);
    EXPECT_ERROR(hipEventCreate(nullptr), hipErrorInvalidValue);
    (void)hipGetLastError(); // some releases do not keep this one
    ERROR_IS(hipEventCreateWithFlags(&a, 0x12340000), hipErrorInvalidValue);
    ERROR_IS(hipEventDestroy(nullptr), hipErrorInvalidHandle);
    ERROR_IS(hipEventRecord(nullptr, nullptr), hipErrorInvalidHandle);
    ERROR_IS(hipEventSynchronize(nullptr), hipErrorInvalidHandle);
    ERROR_IS(hipEventQuery(nullptr), hipErrorInvalidHandle);

    HIP_CHECK(hipEventCreate(&a));
    HIP_CHECK(hipEventCreate(&b));
    HIP_CHECK(hipEventCreateWithFlags(&untimed, hipEventDisableTiming));
    ERROR_IS(hipEventElapsedTime(nullptr, a, b), hipErrorInvalidValue);
    ERROR_IS(hipEventElapsedTime(&ms, nullptr, b), hipErrorInvalidHandle);
    ERROR_IS(hipEventElapsedTime(&ms, a, b), hipErrorInvalidHandle); // not recorded
    HIP_CHECK(hipEventRecord(a, nullptr));
    HIP_CHECK(hipEventRecord(untimed, nullptr));
    HIP_CHECK(hipDeviceSynchronize());
    ERROR_IS(hipEventElapsedTime(&ms, a, untimed), hipErrorInvalidHandle);
    HIP_CHECK(hipEventSynchronize(b)); // never recorded: nothing to wait for
    HIP_CHECK(hipEventDestroy(a));
    HIP_CHECK(hipEventDestroy(b));
    HIP_CHECK(hipEventDestroy(untimed));
}

static void modules() {
    hipModule_t module = nullptr;
    hipFunction_t function = nullptr;
    ERROR_IS(hipModuleLoad(&module, "/nonexistent/kernels.co"), hipErrorFileNotFound);
    std::vector<char> garbage(4096, 'g');
    ERROR_IS_ONE_OF(hipModuleLoadData(&module, garbage.data()), hipErrorInvalidImage, hipErrorInvalidKernelFile);
    ERROR_IS(hipModuleLoadData(&module, nullptr), hipErrorInvalidValue);
    ERROR_IS(hipModuleUnload(nullptr), hipErrorInvalidHandle);
    ERROR_IS(hipModuleGetFunction(&function, nullptr, "f"), hipErrorInvalidHandle);
    ERROR_IS(hipModuleGetFunction(nullptr, nullptr, "f"), hipErrorInvalidValue);
    ERROR_IS_ONE_OF(hipModuleLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), hipErrorInvalidImage, hipErrorInvalidHandle);
}

static void launches() {
    DeviceArray<int> out(256);
    out.fill_bytes(0);
    ERROR_IS_ONE_OF(launch(dim3(0), dim3(64), 0, out.get()), hipErrorInvalidConfiguration, hipErrorInvalidValue);
    ERROR_IS_ONE_OF(launch(dim3(1), dim3(0), 0, out.get()), hipErrorInvalidConfiguration, hipErrorInvalidValue);
    ERROR_IS_ONE_OF(launch(dim3(1), dim3(64, 1, 0), 0, out.get()), hipErrorInvalidConfiguration, hipErrorInvalidValue);
    ERROR_IS_ONE_OF(launch(dim3(1), dim3(1025), 0, out.get()), hipErrorInvalidConfiguration, hipErrorInvalidValue);
    ERROR_IS_ONE_OF(launch(dim3(1), dim3(64, 64), 0, out.get()), hipErrorInvalidConfiguration, hipErrorInvalidValue);
    ERROR_IS(launch(dim3(1), dim3(64), 65537, out.get()), hipErrorInvalidValue); // LDS
    LAUNCH_ERROR_IS((set_one<<<0, 64>>>(out.get())), hipErrorInvalidConfiguration, hipErrorInvalidValue);
    LAUNCH_ERROR_IS((set_one<<<1, 2000>>>(out.get())), hipErrorInvalidConfiguration, hipErrorInvalidValue);
    LAUNCH_ERROR_IS((at_most_64<<<1, 128>>>(out.get())), hipErrorLaunchFailure, hipErrorLaunchFailure);
    int not_a_kernel = 0;
    int* pointer = out.get();
    void* arguments[] = {&pointer};
    // AMD's runtime 7 reads what it takes for a kernel.
    if (check::amds_release() != 7) ERROR_IS(hipLaunchKernel(&not_a_kernel, dim3(1), dim3(1), arguments, 0, nullptr), hipErrorInvalidDeviceFunction);

    // The first rule that is broken gives the error: the device's limit of threads, its shared memory, the kernel's own bound.
    DeviceArray<int> written(1024);
    int* target = written.get();
    void* target_argument[] = {&target};
    const void* any = reinterpret_cast<const void*>(set_one);
    const void* bounded = reinterpret_cast<const void*>(at_most_64);
    for (unsigned threads : {1u, 64u, 65u, 1024u, 1025u}) {
        for (unsigned shared : {0u, 65536u, 65537u}) {
            for (const void* kernel : {any, bounded}) {
                hipError_t wanted = hipSuccess;
                if (kernel == bounded && threads > 64) wanted = hipErrorLaunchFailure;
                if (shared > 65536) wanted = hipErrorInvalidValue;
                if (threads > 1024) wanted = hipErrorInvalidConfiguration;
                const hipError_t got = hipLaunchKernel(kernel, dim3(1), dim3(threads), target_argument, shared, nullptr), last = hipGetLastError();
                // AMD's runtime 6 has one code for both limits of the device; 7 asks for shared memory first, and keeps another code than it returns.
                const bool is_other = check::amds_release() > 0 && threads > 1024;
                EXPECT(got == wanted || (is_other && got == hipErrorInvalidValue));
                EXPECT(last == got || (is_other && last == hipErrorInvalidValue));
            }
        }
    }

    // None of them did anything, and none of them is in the way.
    check::equal("untouched", out.download(), std::vector<int>(256, 0));
    set_one<<<2, 128>>>(out.get());
    HIP_CHECK(hipGetLastError());
    check::equal("a good launch", out.download(), std::vector<int>(256, 1));
}

static void names() {
    EXPECT(std::string(hipGetErrorName(hipSuccess)) == "hipSuccess");
    EXPECT(std::string(hipGetErrorName(hipErrorInvalidValue)) == "hipErrorInvalidValue");
    EXPECT(std::string(hipGetErrorString(hipErrorInvalidValue)) == "invalid argument");
    EXPECT(std::string(hipGetErrorString(hipErrorOutOfMemory)) == "out of memory");
    EXPECT(std::string(hipGetErrorName(hipErrorIllegalAddress)) == "hipErrorIllegalAddress");
    EXPECT(std::string(hipGetErrorName(static_cast<hipError_t>(54321))) == "hipErrorUnknown");
    const char* text = nullptr;
    HIP_CHECK(hipDrvGetErrorName(hipErrorNotReady, &text));
    EXPECT(text != nullptr && std::string(text) == "hipErrorNotReady");
}

int main() {
    check::begin("errors");
    EXPECT_ERROR(hipGetLastError(), hipSuccess);
    memory();
    devices();
    streams_and_events();
    modules();
    launches();
    names();
    return check::finish();
}
