// What release 7 of HIP has new: libraries and their kernels, batches of copies, attributes of streams. Found by name, as release 6 has none of it.
#include <unistd.h>

#include <climits>

#include "runtime.h"

static hipStream_t stream = nullptr;

static bool is_hipr() { return check::amds_release() == 0; }

// A function of the library that carries the calls out; null where its release does not have it.
template <class F> static F* find(const char* name) { return reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name)); }

static std::vector<char> read(const std::string& path) {
    std::vector<char> bytes;
    if (FILE* file = std::fopen(path.c_str(), "rb")) {
        char buffer[4096];
        for (size_t count; (count = std::fread(buffer, 1, sizeof buffer, file)) > 0;) bytes.insert(bytes.end(), buffer, buffer + count);
        std::fclose(file);
    }
    return bytes;
}

// The code object that was compiled beside this program, at the same level.
static std::string beside() {
    char path[PATH_MAX] = {};
    if (readlink("/proc/self/exe", path, sizeof path - 1) < 0) return {};
    std::string self = path;
    return self.substr(0, self.rfind('/') + 1) + "module_kernels" + self.substr(self.rfind('.')) + ".co";
}

using Handle = void*;
using LoadData = hipError_t(Handle*, const void*, void*, void**, unsigned, void*, void**, unsigned);
using LoadFile = hipError_t(Handle*, const char*, void*, void**, unsigned, void*, void**, unsigned);

static void libraries() {
    auto load_data = find<LoadData>("hipLibraryLoadData");
    if (load_data == nullptr) return;
    auto load_file = find<LoadFile>("hipLibraryLoadFromFile");
    auto unload = find<hipError_t(Handle)>("hipLibraryUnload");
    auto kernel_of = find<hipError_t(Handle*, Handle, const char*)>("hipLibraryGetKernel");
    auto count_of = find<hipError_t(unsigned*, Handle)>("hipLibraryGetKernelCount");
    auto enumerate = find<hipError_t(Handle*, unsigned, Handle)>("hipLibraryEnumerateKernels");
    auto name_of = find<hipError_t(const char**, Handle)>("hipKernelGetName");
    auto library_of = find<hipError_t(Handle*, Handle)>("hipKernelGetLibrary");
    auto functions_of = find<hipError_t(unsigned*, hipModule_t)>("hipModuleGetFunctionCount");
    std::string path = beside();
    std::vector<char> image = read(path);
    EXPECT(!image.empty());
    Handle library = nullptr, kernel = nullptr, found = nullptr;
    EXPECT_ERROR(load_data(nullptr, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0), hipErrorInvalidValue);
    EXPECT_ERROR(load_data(&library, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0), hipErrorInvalidValue);
    EXPECT_ERROR(load_file(nullptr, path.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0), hipErrorInvalidValue);
    EXPECT_ERROR(load_file(&library, "/nowhere", nullptr, nullptr, 0, nullptr, nullptr, 0), hipErrorInvalidValue);
    for (bool from_file : {false, true}) {
        if (from_file) HIP_CHECK(load_file(&library, path.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
        else HIP_CHECK(load_data(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
        unsigned count = 0, in_module = 0;
        HIP_CHECK(count_of(&count, library));
        hipModule_t module = nullptr;
        HIP_CHECK(hipModuleLoadData(&module, image.data()));
        HIP_CHECK(functions_of(&in_module, module));
        EXPECT(count > 0 && in_module == count);
        std::vector<Handle> kernels(count + 1, nullptr);
        HIP_CHECK(enumerate(kernels.data(), count + 1, library));
        EXPECT(kernels[count - 1] != nullptr && kernels[count] == nullptr);
        std::vector<std::string> names;
        for (unsigned i = 0; i < count; i++) {
            const char* name = nullptr;
            HIP_CHECK(name_of(&name, kernels[i]));
            names.push_back(name);
            HIP_CHECK(kernel_of(&kernel, library, name));
            EXPECT(kernel == kernels[i]);
            HIP_CHECK(library_of(&found, kernel));
            EXPECT(found == library);
            // Each is a function of the module of the same code, too.
            hipFunction_t function = nullptr;
            HIP_CHECK(hipModuleGetFunction(&function, module, name));
            int own = -1, other = -2;
            HIP_CHECK(hipFuncGetAttribute(&own, HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, reinterpret_cast<hipFunction_t>(kernel)));
            HIP_CHECK(hipFuncGetAttribute(&other, HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
            EXPECT(own == other);
        }
        std::sort(names.begin(), names.end());
        EXPECT(std::unique(names.begin(), names.end()) == names.end());
        EXPECT_ERROR(kernel_of(&kernel, library, "nothing"), hipErrorNotFound);
        EXPECT_ERROR(kernel_of(&kernel, library, ""), hipErrorNotFound);
        EXPECT_ERROR(kernel_of(&kernel, library, nullptr), hipErrorInvalidValue);
        EXPECT_ERROR(kernel_of(nullptr, library, names[0].c_str()), hipErrorInvalidValue);
        EXPECT_ERROR(kernel_of(&kernel, nullptr, names[0].c_str()), hipErrorInvalidValue);
        EXPECT_ERROR(count_of(nullptr, library), hipErrorInvalidValue);
        EXPECT_ERROR(count_of(&count, nullptr), hipErrorInvalidValue);
        EXPECT_ERROR(enumerate(nullptr, 1, library), hipErrorInvalidValue);
        EXPECT_ERROR(enumerate(kernels.data(), 1, nullptr), hipErrorInvalidValue);
        EXPECT_ERROR(name_of(nullptr, kernels[0]), hipErrorInvalidValue);
        const char* name = nullptr;
        EXPECT_ERROR(name_of(&name, nullptr), hipErrorInvalidValue);
        EXPECT_ERROR(library_of(nullptr, kernels[0]), hipErrorInvalidValue);
        EXPECT_ERROR(library_of(&found, nullptr), hipErrorInvalidValue);
        EXPECT_ERROR(functions_of(nullptr, module), hipErrorInvalidValue);
        EXPECT_ERROR(functions_of(&count, nullptr), hipErrorInvalidHandle);
        HIP_CHECK(hipModuleUnload(module));
        HIP_CHECK(unload(library));
    }
    EXPECT_ERROR(unload(nullptr), hipErrorInvalidHandle);
}

// As in release 7, where release 6 has no such structures.
struct Operand { int type; void* ptr; size_t row_length, layer_height; int location[2]; };
struct Copy3D { Operand src, dst; hipExtent extent; int order; unsigned flags; };

static void batches() {
    auto copy = find<hipError_t(void**, void**, size_t*, size_t, void*, size_t*, size_t, size_t*, hipStream_t)>("hipMemcpyBatchAsync");
    auto copy_3d = find<hipError_t(size_t, Copy3D*, size_t*, unsigned long long, hipStream_t)>("hipMemcpy3DBatchAsync");
    if (copy == nullptr) return;
    std::vector<char> host(1024);
    for (size_t i = 0; i < host.size(); i++) host[i] = static_cast<char>(i * 7);
    DeviceArray<char> device(1024);
    device.fill_bytes(0);
    HIP_CHECK(hipDeviceSynchronize());
    void* dsts[] = {device.get() + 512, device.get()};
    void* srcs[] = {host.data(), host.data() + 100};
    size_t sizes[] = {64, 32}, failed = 77;
    HIP_CHECK(copy(dsts, srcs, sizes, 2, nullptr, nullptr, 0, &failed, stream));
    EXPECT(!is_hipr() || failed == SIZE_MAX);
    HIP_CHECK(hipStreamSynchronize(stream));
    std::vector<char> now = device.download();
    if (is_hipr()) EXPECT(std::equal(host.begin(), host.begin() + 64, now.begin() + 512) && std::equal(host.begin() + 100, host.begin() + 132, now.begin()));
    size_t index = 0;
    char attributes[64] = {};
    EXPECT_ERROR(copy(dsts, srcs, sizes, 2, attributes, &index, 1, &failed, stream), hipErrorNotSupported);
    EXPECT_ERROR(copy(nullptr, srcs, sizes, 2, nullptr, nullptr, 0, &failed, stream), hipErrorInvalidValue);
    EXPECT_ERROR(copy(dsts, nullptr, sizes, 2, nullptr, nullptr, 0, &failed, stream), hipErrorInvalidValue);
    EXPECT_ERROR(copy(dsts, srcs, nullptr, 2, nullptr, nullptr, 0, &failed, stream), hipErrorInvalidValue);
    EXPECT_ERROR(copy(dsts, srcs, sizes, 0, nullptr, nullptr, 0, &failed, stream), hipErrorInvalidValue);
    EXPECT_ERROR(copy(dsts, srcs, sizes, 2, nullptr, nullptr, 0, nullptr, stream), hipErrorInvalidValue);
    // Boxes of 16 bytes by 2 rows, to rows that are 32 bytes apart.
    auto box = [&](char* to, char* from) {
        Copy3D op{};
        op.src = {1, from, 16, 2, {0, 0}};
        op.dst = {1, to, 32, 2, {1, 0}};
        op.extent = make_hipExtent(16, 2, 1);
        op.order = 1;
        return op;
    };
    device.fill_bytes(0);
    HIP_CHECK(hipDeviceSynchronize());
    std::vector<Copy3D> ops = {box(device.get(), host.data()), box(device.get() + 256, host.data() + 200)};
    HIP_CHECK(copy_3d(2, ops.data(), &failed, 0, stream));
    EXPECT(failed == SIZE_MAX);
    HIP_CHECK(hipStreamSynchronize(stream));
    now = device.download();
    for (size_t op = 0; op < 2; op++)
        for (size_t row = 0; row < 2; row++)
            for (size_t column = 0; column < 32; column++)
                EXPECT(now[op * 256 + row * 32 + column] == (column < 16 ? host[op * 200 + row * 16 + column] : 0));
    EXPECT_ERROR(copy_3d(0, ops.data(), &failed, 0, stream), hipErrorInvalidValue);
    EXPECT_ERROR(copy_3d(2, nullptr, &failed, 0, stream), hipErrorInvalidValue);
    EXPECT_ERROR(copy_3d(2, ops.data(), &failed, 1, stream), hipErrorInvalidValue);
    ops[1].dst.row_length = 8;
    EXPECT_ERROR(copy_3d(2, ops.data(), &failed, 0, stream), hipErrorInvalidValue);
    EXPECT(failed == 1);
    HIP_CHECK(hipStreamSynchronize(stream));
}

static void attributes() {
    auto get = find<hipError_t(hipStream_t, int, int*)>("hipStreamGetAttribute");
    auto set = find<hipError_t(hipStream_t, int, const int*)>("hipStreamSetAttribute");
    auto copy = find<hipError_t(hipStream_t, hipStream_t)>("hipStreamCopyAttributes");
    if (get == nullptr) return;
    const int policy = 3, priority = 8;
    int value[16] = {99};
    HIP_CHECK(get(stream, policy, value));
    EXPECT(value[0] == 1);
    HIP_CHECK(get(nullptr, policy, value));
    HIP_CHECK(get(stream, priority, value));
    EXPECT(value[0] == 0);
    for (int wanted : {2, 3, 4, 1, 3}) {
        value[0] = wanted;
        HIP_CHECK(set(stream, policy, value));
        value[0] = 99;
        HIP_CHECK(get(stream, policy, value));
        EXPECT(value[0] == wanted);
    }
    for (int wrong : {-1, 0}) {
        value[0] = wrong;
        EXPECT_ERROR(set(stream, policy, value), hipErrorInvalidValue);
    }
    EXPECT_ERROR(set(stream, priority, value), hipErrorInvalidValue);
    for (int attribute : {0, 1, 2, 4, 9, 10, 11}) {
        EXPECT_ERROR(get(stream, attribute, value), hipErrorInvalidValue);
        EXPECT_ERROR(set(stream, attribute, value), hipErrorInvalidValue);
    }
    EXPECT_ERROR(get(stream, policy, nullptr), hipErrorInvalidValue);
    EXPECT_ERROR(set(stream, policy, nullptr), hipErrorInvalidValue);
    EXPECT_ERROR(get(reinterpret_cast<hipStream_t>(0x1234), policy, value), hipErrorInvalidHandle);
    hipStream_t other = nullptr;
    HIP_CHECK(hipStreamCreate(&other));
    HIP_CHECK(copy(other, stream));
    HIP_CHECK(get(other, policy, value));
    EXPECT(value[0] == 3);
    EXPECT_ERROR(copy(reinterpret_cast<hipStream_t>(0x1234), stream), hipErrorInvalidHandle);
    HIP_CHECK(hipStreamDestroy(other));
}

int main() {
    check::begin("libraries");
    HIP_CHECK(hipStreamCreate(&stream));
    libraries();
    batches();
    attributes();
    HIP_CHECK(hipStreamDestroy(stream));
    return check::finish();
}
