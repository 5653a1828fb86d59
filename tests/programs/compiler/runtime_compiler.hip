// The runtime compiler: options, headers, lowered names of kernels and of a variable, an error with its log, code that is linked
// from bitcode, the GPU that it asks the runtime for. What it makes is loaded and its results are checked.
#include <cmath>
#include <string>

#include <hip/hiprtc.h>

#include "../check.h"

#define RTC_CHECK(call) \
    do { \
        hiprtcResult result_ = (call); \
        if (result_ != HIPRTC_SUCCESS) \
            check::fail("%s:%d: %s gave %s", __FILE__, __LINE__, #call, hiprtcGetErrorString(result_)); \
    } while (0)

static const char* source = R"(
#include "polynomial.h"

__constant__ float offsets[3] = {1, 2, 3};

template <typename T, int N>
__global__ void polynomials(const T* in, T* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = polynomial<T, N>(in[i]) * FACTOR + offsets[i % 3];
}

extern "C" __global__ void reverse_block(int* values) {
    __shared__ int shared[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    shared[threadIdx.x] = values[i];
    __syncthreads();
    values[i] = shared[blockDim.x - 1 - threadIdx.x] + atomicAdd(values + 1024, 0);
}
)";

// 1 + x (1 + x (1 + ...)), N times.
static const char* header = R"(
template <typename T, int N>
__device__ T polynomial(T x) {
    T sum = 1;
    for (int i = 0; i < N; i++) sum = sum * x + 1;
    return sum;
}
)";

static std::string log_of(hiprtcProgram program) {
    size_t size = 0;
    RTC_CHECK(hiprtcGetProgramLogSize(program, &size));
    std::string log(size, '\0');
    if (size > 0) RTC_CHECK(hiprtcGetProgramLog(program, &log[0]));
    return log;
}

static void compile(hiprtcProgram program, std::vector<const char*> options) {
    if (hiprtcCompileProgram(program, static_cast<int>(options.size()), options.data()) != HIPRTC_SUCCESS)
        check::fail("compilation: %s", log_of(program).c_str());
}

static std::vector<char> code_of(hiprtcProgram program) {
    size_t size = 0;
    RTC_CHECK(hiprtcGetCodeSize(program, &size));
    std::vector<char> code(size);
    RTC_CHECK(hiprtcGetCode(program, code.data()));
    return code;
}

static hipFunction_t function(hipModule_t module, const char* name) {
    hipFunction_t f = nullptr;
    HIP_CHECK(hipModuleGetFunction(&f, module, name));
    return f;
}

static void check_reversed(hipModule_t module) {
    std::vector<int> values(1025), want(1024);
    for (int i = 0; i < 1024; i++) {
        values[i] = i * i;
        int other = i / 256 * 256 + 255 - i % 256;
        want[i] = other * other + 7;
    }
    values[1024] = 7;
    DeviceArray<int> device(values);
    int* pointer = device.get();
    void* parameters[] = {&pointer};
    HIP_CHECK(hipModuleLaunchKernel(function(module, "reverse_block"), 4, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr));
    std::vector<int> got = device.download();
    got.resize(1024);
    check::equal("reversed", got, want);
}

template <typename T, int N>
static void check_polynomials(hipModule_t module, const char* name) {
    const int n = 1000;
    std::vector<T> in(n), want(n);
    for (int i = 0; i < n; i++) {
        in[i] = static_cast<T>(i % 17) / 16;
        T sum = 1;
        for (int k = 0; k < N; k++) sum = std::fma(sum, in[i], T(1));
        want[i] = sum * 3 + static_cast<T>(i % 3 + 1);
    }
    DeviceArray<T> din(in), dout(n);
    const T* in_pointer = din.get();
    T* out_pointer = dout.get();
    int count = n;
    void* parameters[] = {&in_pointer, &out_pointer, &count};
    HIP_CHECK(hipModuleLaunchKernel(function(module, name), (n + 127) / 128, 1, 1, 128, 1, 1, 0, nullptr, parameters, nullptr));
    std::vector<T> got = dout.download();
    for (int i = 0; i < n; i++) EXPECT(std::fabs(got[i] - want[i]) <= 1e-5 * std::fabs(want[i]));
}

static void names_and_options(const std::string& target) {
    hiprtcProgram program;
    const char *headers[] = {header}, *names[] = {"polynomial.h"};
    RTC_CHECK(hiprtcCreateProgram(&program, source, "kernels.hip", 1, headers, names));
    const char *of_float = "polynomials<float, 4>", *of_double = "polynomials<double, 2>", *of_offsets = "&offsets";
    for (const char* name : {of_float, of_double, of_offsets}) RTC_CHECK(hiprtcAddNameExpression(program, name));
    const char* lowered = nullptr;
    compile(program, {target.c_str(), "-DFACTOR=3", "-std=c++17", "-O3"});
    EXPECT(hiprtcGetLoweredName(program, "polynomials<int, 4>", &lowered) == HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID);

    std::vector<char> code = code_of(program);
    hipModule_t module;
    HIP_CHECK(hipModuleLoadData(&module, code.data()));
    RTC_CHECK(hiprtcGetLoweredName(program, of_float, &lowered));
    EXPECT(std::string(lowered).find("_Z11polynomialsIf") == 0);
    check_polynomials<float, 4>(module, lowered);
    RTC_CHECK(hiprtcGetLoweredName(program, of_double, &lowered));
    check_polynomials<double, 2>(module, lowered);
    RTC_CHECK(hiprtcGetLoweredName(program, of_offsets, &lowered));
    hipDeviceptr_t address = nullptr;
    size_t size = 0;
    HIP_CHECK(hipModuleGetGlobal(&address, &size, module, lowered));
    float offsets[3] = {};
    EXPECT(size == sizeof offsets);
    HIP_CHECK(hipMemcpyDtoH(offsets, address, sizeof offsets));
    EXPECT(offsets[0] == 1 && offsets[1] == 2 && offsets[2] == 3);
    check_reversed(module);
    HIP_CHECK(hipModuleUnload(module));
    RTC_CHECK(hiprtcDestroyProgram(&program));
}

static void an_error_has_a_log(const std::string& target) {
    hiprtcProgram program;
    RTC_CHECK(hiprtcCreateProgram(&program, "__global__ void broken() { no_such_thing(); }", "broken.hip", 0, nullptr, nullptr));
    const char* options[] = {target.c_str()};
    hiprtcResult result = hiprtcCompileProgram(program, 1, options);
    EXPECT(result == HIPRTC_ERROR_COMPILATION);
    EXPECT(hiprtcGetErrorString(result) == std::string("HIPRTC_ERROR_COMPILATION"));
    std::string log = log_of(program);
    EXPECT(log.find("broken.hip") != std::string::npos && log.find("no_such_thing") != std::string::npos);
    RTC_CHECK(hiprtcDestroyProgram(&program));
}

// Without --offload-arch the compiler asks the runtime which GPU there is.
static void the_gpu_is_found() {
    hiprtcProgram program;
    const char *headers[] = {header}, *names[] = {"polynomial.h"};
    RTC_CHECK(hiprtcCreateProgram(&program, source, "kernels.hip", 1, headers, names));
    compile(program, {"-DFACTOR=3"});
    hipModule_t module;
    HIP_CHECK(hipModuleLoadData(&module, code_of(program).data()));
    check_reversed(module);
    HIP_CHECK(hipModuleUnload(module));
    RTC_CHECK(hiprtcDestroyProgram(&program));
}

static void bitcode_is_linked(const std::string& target) {
    hiprtcProgram program;
    const char *headers[] = {header}, *names[] = {"polynomial.h"};
    RTC_CHECK(hiprtcCreateProgram(&program, source, "kernels.hip", 1, headers, names));
    compile(program, {target.c_str(), "-DFACTOR=3", "-fgpu-rdc"});
    size_t size = 0;
    RTC_CHECK(hiprtcGetBitcodeSize(program, &size));
    std::vector<char> bitcode(size);
    RTC_CHECK(hiprtcGetBitcode(program, bitcode.data()));
    RTC_CHECK(hiprtcDestroyProgram(&program));

    hiprtcLinkState state;
    RTC_CHECK(hiprtcLinkCreate(0, nullptr, nullptr, &state));
    RTC_CHECK(hiprtcLinkAddData(state, HIPRTC_JIT_INPUT_LLVM_BITCODE, bitcode.data(), bitcode.size(), "kernels", 0, nullptr, nullptr));
    void* code = nullptr;
    RTC_CHECK(hiprtcLinkComplete(state, &code, &size));
    hipModule_t module;
    HIP_CHECK(hipModuleLoadData(&module, code));
    check_reversed(module);
    HIP_CHECK(hipModuleUnload(module));
    RTC_CHECK(hiprtcLinkDestroy(state));

    // The same by HIP's own functions.
    hipLinkState_t linked;
    HIP_CHECK(hipLinkCreate(0, nullptr, nullptr, &linked));
    HIP_CHECK(hipLinkAddData(linked, hipJitInputLLVMBitcode, bitcode.data(), bitcode.size(), "kernels", 0, nullptr, nullptr));
    HIP_CHECK(hipLinkComplete(linked, &code, &size));
    HIP_CHECK(hipModuleLoadData(&module, code));
    check_reversed(module);
    HIP_CHECK(hipModuleUnload(module));
    HIP_CHECK(hipLinkDestroy(linked));
    EXPECT_ERROR(hipLinkCreate(0, nullptr, nullptr, nullptr), hipErrorInvalidValue);
    EXPECT_ERROR(hipLinkDestroy(nullptr), hipErrorInvalidValue);
}

int main() {
    check::begin("runtime_compiler");
    int major = -1, minor = -1;
    RTC_CHECK(hiprtcVersion(&major, &minor));
    EXPECT(major >= 6 && minor >= 0);
    hipDeviceProp_t properties;
    HIP_CHECK(hipGetDeviceProperties(&properties, 0));
    std::string target = std::string("--offload-arch=") + properties.gcnArchName;
    names_and_options(target);
    an_error_has_a_log(target);
    the_gpu_is_found();
    bitcode_is_linked(target);
    return check::finish();
}
