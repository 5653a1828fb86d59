// The module API with code objects from files: loads in three ways, launches with kernelParams, with `extra` and by hipExtModuleLaunchKernel
// with events, globals, dynamic LDS, attributes, several modules at once, older versions of code objects. The files are beside this program:
// module_kernels.O0.co and others for module.O0; or the first argument names one.
#include <unistd.h>

#include <fstream>
#include <iterator>

#include <hip/hip_ext.h>

#include "check.h"
#include "runtime.h"

static std::string beside_program(const char* suffix) {
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    std::string program(path, length > 0 ? static_cast<size_t>(length) : 0);
    size_t slash = program.rfind('/'), dot = program.rfind('.');
    return program.substr(0, slash + 1) + "module_kernels" + (dot != std::string::npos && dot > slash ? program.substr(dot) : ".O0") + suffix;
}

static std::vector<char> read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

static hipFunction_t function(hipModule_t module, const char* name) {
    hipFunction_t f = nullptr;
    HIP_CHECK(hipModuleGetFunction(&f, module, name));
    return f;
}

static void run_everything(hipModule_t module) {
    check::Rng rng(32);
    const int n = 1000;
    std::vector<float> in = rng.reals<float>(n, -5, 5), want(n);
    DeviceArray<float> din(in), dout(n);
    const float *in_pointer = din.get();
    float* out_pointer = dout.get();
    int count = n;

    // A __constant__ variable with its initial value, kernelParams.
    hipFunction_t scale_values = function(module, "scale_values");
    void* parameters[] = {&in_pointer, &out_pointer, &count};
    HIP_CHECK(hipModuleLaunchKernel(scale_values, (n + 127) / 128, 1, 1, 128, 1, 1, 0, nullptr, parameters, nullptr));
    for (int i = 0; i < n; i++) want[i] = in[i] * 2;
    check::equal("kernelParams", dout.download(), want);

    // The variable changed; arguments as one buffer.
    hipDeviceptr_t scale_address = nullptr;
    size_t size = 0;
    HIP_CHECK(hipModuleGetGlobal(&scale_address, &size, module, "module_scale"));
    EXPECT(scale_address != nullptr && size == sizeof(float));
    float scale = -0.5f;
    HIP_CHECK(hipMemcpyHtoD(scale_address, &scale, sizeof scale));
    struct {
        const float* in;
        float* out;
        int count;
    } buffer = {in_pointer, out_pointer, n};
    size_t buffer_size = sizeof buffer;
    void* extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &buffer, HIP_LAUNCH_PARAM_BUFFER_SIZE, &buffer_size, HIP_LAUNCH_PARAM_END};
    hipStream_t stream;
    HIP_CHECK(hipStreamCreate(&stream));
    HIP_CHECK(hipModuleLaunchKernel(scale_values, (n + 63) / 64, 1, 1, 64, 1, 1, 0, stream, nullptr, extra));
    HIP_CHECK(hipStreamSynchronize(stream));
    for (int i = 0; i < n; i++) want[i] = in[i] * -0.5f;
    check::equal("extra", dout.download(), want);

    // Events around a launch; here sizes are in threads.
    hipEvent_t start, stop;
    HIP_CHECK(hipEventCreate(&start));
    HIP_CHECK(hipEventCreate(&stop));
    dout.fill_bytes(0);
    HIP_CHECK(hipExtModuleLaunchKernel(scale_values, 1024, 1, 1, 256, 1, 1, 0, stream, parameters, nullptr, start, stop, 0));
    HIP_CHECK(hipEventSynchronize(stop));
    float ms = -1;
    HIP_CHECK(hipEventElapsedTime(&ms, start, stop));
    EXPECT(ms >= 0 && ms < 60000);
    check::equal("hipExtModuleLaunchKernel", dout.download(), want);
    HIP_CHECK(hipEventDestroy(start));
    HIP_CHECK(hipEventDestroy(stop));

    // Arguments of all sizes, both ways.
    char a = -5;
    double b = 2.75;
    short c = -300;
    int d = 1 << 30;
    unsigned char e = 200;
    long long f = -(1ll << 45);
    DeviceArray<double> dmixed(6);
    double* mixed_pointer = dmixed.get();
    hipFunction_t mixed = function(module, "mixed_arguments");
    void* mixed_parameters[] = {&a, &b, &c, &d, &e, &f, &mixed_pointer};
    const std::vector<double> mixed_want = {-5, 2.75, -300, 1 << 30, 200, -0x1p45};
    HIP_CHECK(hipModuleLaunchKernel(mixed, 1, 1, 1, 64, 1, 1, 0, nullptr, mixed_parameters, nullptr));
    check::equal("mixed arguments", dmixed.download(), mixed_want);
    struct {
        char a;
        double b;
        short c;
        int d;
        unsigned char e;
        long long f;
        double* out;
    } packed = {a, b, c, d, e, f, mixed_pointer};
    size_t packed_size = sizeof packed;
    void* packed_extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &packed, HIP_LAUNCH_PARAM_BUFFER_SIZE, &packed_size, HIP_LAUNCH_PARAM_END};
    dmixed.fill_bytes(0);
    HIP_CHECK(hipModuleLaunchKernel(mixed, 2, 2, 1, 32, 1, 1, 0, nullptr, nullptr, packed_extra));
    check::equal("mixed arguments as a buffer", dmixed.download(), mixed_want);

    // A kernel without arguments changes a variable.
    hipDeviceptr_t counter = nullptr;
    HIP_CHECK(hipModuleGetGlobal(&counter, nullptr, module, "module_counter"));
    HIP_CHECK(hipModuleLaunchKernel(function(module, "count_blocks"), 3, 2, 2, 64, 1, 1, 0, stream, nullptr, nullptr));
    HIP_CHECK(hipStreamSynchronize(stream));
    int counted = 0;
    HIP_CHECK(hipMemcpyDtoH(&counted, counter, sizeof counted));
    EXPECT(counted == 40 + 12);

    // A table with partly given initial values.
    DeviceArray<unsigned> dtable(64);
    unsigned* table_pointer = dtable.get();
    void* table_parameters[] = {&table_pointer};
    HIP_CHECK(hipModuleLaunchKernel(function(module, "read_table"), 1, 1, 1, 64, 1, 1, 0, nullptr, table_parameters, nullptr));
    std::vector<unsigned> table(64);
    table[0] = 7, table[1] = 11, table[2] = 13;
    check::equal("table", dtable.download(), table);

    // Managed variables: the host, copies and kernels see the same memory, with its initial value first.
    hipDeviceptr_t managed = nullptr, managed_zero = nullptr;
    size_t managed_size = 0, managed_zero_size = 0;
    HIP_CHECK(hipModuleGetGlobal(&managed, &managed_size, module, "module_managed"));
    HIP_CHECK(hipModuleGetGlobal(&managed_zero, &managed_zero_size, module, "module_managed_zero"));
    EXPECT(managed_size == 4 * sizeof(int) && managed_zero_size == sizeof(double));
    int* seen = static_cast<int*>(managed);
    std::vector<int> digits = {3, 1, 4, 1}, copied(4);
    check::equal("a managed variable's initial value", std::vector<int>(seen, seen + 4), digits);
    HIP_CHECK(hipMemcpyDtoH(copied.data(), managed, managed_size));
    check::equal("its copy", copied, digits);
    for (int round = 1; round <= 3; round++) {
        seen[3] = digits[3] = 50 + round;
        void* managed_parameters[] = {&round};
        HIP_CHECK(hipModuleLaunchKernel(function(module, "change_managed"), 1, 1, 1, 4, 1, 1, 0, stream, managed_parameters, nullptr));
        HIP_CHECK(hipStreamSynchronize(stream));
        for (int& digit : digits) digit *= round;
        check::equal("a managed variable after a kernel", std::vector<int>(seen, seen + 4), digits);
        HIP_CHECK(hipMemcpyDtoH(copied.data(), managed, managed_size));
        check::equal("its copy after a kernel", copied, digits);
        EXPECT(*static_cast<double*>(managed_zero) == 0.5 * round);
    }

    // Dynamic LDS.
    std::vector<int> values(4 * 96), sums(4);
    for (size_t i = 0; i < values.size(); i++) {
        values[i] = static_cast<int>(rng.below(1000));
        sums[i / 96] += values[i];
    }
    DeviceArray<int> dvalues(values), dsums(4);
    int *values_pointer = dvalues.get(), *sums_pointer = dsums.get();
    void* sum_parameters[] = {&values_pointer, &sums_pointer};
    HIP_CHECK(hipModuleLaunchKernel(function(module, "sum_dynamic"), 4, 1, 1, 96, 1, 1, 96 * sizeof(int), stream, sum_parameters, nullptr));
    HIP_CHECK(hipStreamSynchronize(stream));
    check::equal("dynamic LDS", dsums.download(), sums);

    int value = -1;
    HIP_CHECK(hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, scale_values));
    EXPECT(value == 1024);
    HIP_CHECK(hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, scale_values));
    EXPECT(value == 0);
    HIP_CHECK(hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_NUM_REGS, scale_values));
    EXPECT(value > 0);

    hipFunction_t missing = nullptr;
    EXPECT_ERROR(hipModuleGetFunction(&missing, module, "no_such_kernel"), hipErrorNotFound);
    EXPECT_ERROR(hipModuleGetGlobal(&counter, nullptr, module, "no_such_variable"), hipErrorNotFound);
    HIP_CHECK(hipStreamDestroy(stream));
}

int main(int argc, char** argv) {
    check::begin("module");
    const std::string path = argc > 1 ? argv[1] : beside_program(".co");
    std::vector<char> bundle = read_file(path), compressed = read_file(argc > 1 ? argv[1] : beside_program(".ccob"));
    EXPECT(!bundle.empty() && !compressed.empty());
    if (bundle.empty() || compressed.empty()) return check::finish();

    hipModule_t from_file, from_memory, from_compressed, from_elf = nullptr;
    HIP_CHECK(hipModuleLoad(&from_file, path.c_str()));
    run_everything(from_file);

    // One function has limits for a grid's blocks.
    hipFunction_t count_blocks = function(from_file, "count_blocks");
    const unsigned many = 65537;
    hipDeviceptr_t counter = nullptr;
    int before = 0, after = 0;
    HIP_CHECK(hipModuleGetGlobal(&counter, nullptr, from_file, "module_counter"));
    HIP_CHECK(hipMemcpyDtoH(&before, counter, sizeof before));
    EXPECT_ERROR(hipModuleLaunchKernel(count_blocks, 1, many, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), hipErrorInvalidValue);
    EXPECT_ERROR(hipModuleLaunchKernel(count_blocks, 1, 1, many, 1, 1, 1, 0, nullptr, nullptr, nullptr), hipErrorInvalidValue);
    HIP_CHECK(hipExtModuleLaunchKernel(count_blocks, 1, many, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr, nullptr, nullptr, 0));
    HIP_CHECK(hipExtModuleLaunchKernel(count_blocks, 1, 1, many, 1, 1, 1, 0, nullptr, nullptr, nullptr, nullptr, nullptr, 0));
    // A grid that is counted in threads is judged like any other; only then it matters that hipr launches whole blocks.
    for (unsigned threads : {0u, 1u, 1024u, 1025u, 2000u}) {
        for (unsigned block : {0u, 1000u, 1024u, 1025u}) {
            if (threads > 0 && block > 0 && block <= 1024) continue; // what a block that is not complete does is not asked here
            hipError_t got = hipExtModuleLaunchKernel(count_blocks, threads, 1, 1, block, 1, 1, 0, nullptr, nullptr, nullptr, nullptr, nullptr, 0);
            EXPECT(got == hipErrorInvalidConfiguration || (got == hipErrorInvalidValue && check::amds_release() == 6));
        }
    }
    HIP_CHECK(hipMemcpyDtoH(&after, counter, sizeof after));
    EXPECT(after - before == 2 * static_cast<int>(many));

    // Another module of the same file has its own variables.
    HIP_CHECK(hipModuleLoadData(&from_memory, bundle.data()));
    std::fill(bundle.begin() + 64, bundle.begin() + 128, 'x'); // our copy is not needed any more
    run_everything(from_memory);
    HIP_CHECK(hipModuleUnload(from_file));

    HIP_CHECK(hipModuleLoadDataEx(&from_compressed, compressed.data(), 0, nullptr, nullptr));
    run_everything(from_compressed);
    HIP_CHECK(hipModuleUnload(from_compressed));
    HIP_CHECK(hipModuleUnload(from_memory));

    // Code objects of versions 4 and 5: their kernels find sizes in other places.
    for (const char* version : {".v4.co", ".v5.co"}) {
        if (argc > 1) break;
        hipModule_t older = nullptr;
        HIP_CHECK(hipModuleLoad(&older, beside_program(version).c_str()));
        run_everything(older);
        HIP_CHECK(hipModuleUnload(older));
    }

    // The bare code object inside the bundle (its last entry).
    const char elf_magic[4] = {0x7f, 'E', 'L', 'F'};
    auto elf = std::search(bundle.begin(), bundle.end(), elf_magic, elf_magic + 4);
    if (elf != bundle.end()) {
        std::vector<char> image(elf, bundle.end());
        HIP_CHECK(hipModuleLoadData(&from_elf, image.data()));
        run_everything(from_elf);
        HIP_CHECK(hipModuleUnload(from_elf));
    }
    return check::finish();
}
