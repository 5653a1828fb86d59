// Kernels: modules, functions, launches, occupancy.
#include <fstream>
#include <iterator>

#include "../answers.h"

#include <hip/hip_ext.h>

using namespace answers;

__global__ void kernel(int* out) {
    if (out != nullptr) out[threadIdx.x] = 1;
}
__global__ void __launch_bounds__(64) at_most_64(int*) {}
__device__ int symbol;
static const char unknown = 0;

int main(int count, char** arguments) {
    begin(count, arguments);
    Results& r = results;
    static int* nowhere = nullptr;
    static void* parameters[] = {&nowhere};
    hipStream_t stream;
    hipStreamCreate(&stream);

    auto functions = any<const void*>({{"kernel", reinterpret_cast<const void*>(kernel)}, {"at_most_64", reinterpret_cast<const void*>(at_most_64)}, OF(&unknown), OF(nullptr)});
    static const dim3 sizes[] = {dim3(1), dim3(0), dim3(64), dim3(65), dim3(1024), dim3(1025), dim3(1, 0), dim3(1, 1, 0), dim3(32, 32), dim3(32, 33), dim3(1, 65536), dim3(1, 1, 65536), dim3(0x80000000u), dim3(0x7fffffffu, 1)};
    auto grids = any<int>({{"1", 0}, {"0", 1}, {"1x0", 6}, {"1x1x0", 7}, {"64", 2}});
    auto blocks = any<int>({{"1", 0}, {"0", 1}, {"64", 2}, {"65", 3}, {"1024", 4}, {"1025", 5}, {"1x0", 6}, {"1x1x0", 7}, {"32x32", 8}, {"32x33", 9}, {"2^31", 12}});
    auto shared = any<size_t>({OF(0), OF(65536), OF(65537), OF(SIZE_MAX)});
    auto streams = any<hipStream_t>({OF(stream), OF(nullptr), OF(hipStreamPerThread)});
    each("hipLaunchKernel", [](const void* of, int grid, int block, void** with, size_t lds, hipStream_t on) { return hipLaunchKernel(of, sizes[grid], sizes[block], with, lds, on); }, settle, functions, grids, blocks, any<void**>({OF(parameters)}), shared, streams);
    each("hipExtLaunchKernel", [](const void* of, int grid, int block, void** with, size_t lds, hipStream_t on, int flags) { return hipExtLaunchKernel(of, sizes[grid], sizes[block], with, lds, on, nullptr, nullptr, flags); }, settle, functions, grids, blocks, any<void**>({OF(parameters)}), shared, streams, any<int>({OF(0), OF(1)}));
    each("hipLaunchCooperativeKernel", [](const void* of, int grid, int block, void** with, unsigned lds, hipStream_t on) { return hipLaunchCooperativeKernel(of, sizes[grid], sizes[block], with, lds, on); }, settle, functions, grids, blocks, any<void**>({OF(parameters)}), any<unsigned>({OF(0), OF(65536), OF(65537)}), streams);
    each("hipLaunchKernel", [](int grid) { return hipLaunchKernel(reinterpret_cast<const void*>(kernel), sizes[grid], sizes[0], parameters, 0, nullptr); }, settle, any<int>({{"1x65536", 10}, {"1x1x65536", 11}}));
    each("__hipPushCallConfiguration", [](int grid, int block, size_t lds, hipStream_t on) { return __hipPushCallConfiguration(sizes[grid], sizes[block], lds, on); }, [] {
        dim3 grid, block;
        size_t lds = 0;
        hipStream_t on = nullptr;
        note("pop", int(__hipPopCallConfiguration(&grid, &block, &lds, &on)));
        note("grid", grid.x);
        note("lds", lds);
    }, grids, blocks, shared, streams);

    static hipFuncAttributes attributes;
    each("hipFuncGetAttributes", [](hipFuncAttributes* to, const void* of) { return hipFuncGetAttributes(to, of); }, [] { note("threads", attributes.maxThreadsPerBlock); note("local", attributes.sharedSizeBytes); }, any<hipFuncAttributes*>({OF(&attributes), OF(nullptr)}), functions);
    each("hipFuncSetAttribute", [](const void* of, hipFuncAttribute which, int value) { return hipFuncSetAttribute(of, which, value); }, nothing, functions, any<hipFuncAttribute>({OF(hipFuncAttributeMaxDynamicSharedMemorySize), OF(hipFuncAttributePreferredSharedMemoryCarveout), OF(hipFuncAttributeMax), {"-1", hipFuncAttribute(-1)}, {"99", hipFuncAttribute(99)}}), any<int>({OF(0), OF(65536), OF(65537), OF(-1), OF(1 << 30)}));
    each("hipFuncSetCacheConfig", [](const void* of, hipFuncCache_t to) { return hipFuncSetCacheConfig(of, to); }, nothing, functions, any<hipFuncCache_t>({OF(hipFuncCachePreferNone), OF(hipFuncCachePreferEqual), {"9", hipFuncCache_t(9)}, {"-1", hipFuncCache_t(-1)}}));
    each("hipFuncSetSharedMemConfig", [](const void* of, hipSharedMemConfig to) { return hipFuncSetSharedMemConfig(of, to); }, nothing, functions, any<hipSharedMemConfig>({OF(hipSharedMemBankSizeDefault), {"9", hipSharedMemConfig(9)}, {"-1", hipSharedMemConfig(-1)}}));
    each("hipGetFuncBySymbol", [](hipFunction_t* to, const void* of) { return hipGetFuncBySymbol(to, of); }, nothing, any<hipFunction_t*>({OF(&r.function), OF(nullptr)}), functions);
    auto block_sizes = any<int>({OF(64), OF(0), OF(-1), OF(65), OF(1024), OF(1025)});
    auto lds = any<size_t>({OF(0), OF(1024), OF(65536), OF(65537)});
    each("hipOccupancyMaxActiveBlocksPerMultiprocessor", [](int* to, const void* of, int block, size_t bytes) { return hipOccupancyMaxActiveBlocksPerMultiprocessor(to, of, block, bytes); }, nothing, any<int*>({OF(&r.number), OF(nullptr)}), functions, block_sizes, lds);
    each("hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", [](int* to, const void* of, int block, size_t bytes, unsigned flags) { return hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(to, of, block, bytes, flags); }, nothing, any<int*>({OF(&r.number), OF(nullptr)}), functions, block_sizes, lds, any<unsigned>({OF(0), OF(1), OF(2)}));
    each("hipOccupancyMaxPotentialBlockSize", [](int* grid, int* block, const void* of, size_t bytes, int limit) { return hipOccupancyMaxPotentialBlockSize(grid, block, of, bytes, limit); }, nothing, any<int*>({OF(&r.number), OF(nullptr)}), any<int*>({OF(&r.other), OF(nullptr)}), functions, lds, any<int>({OF(0), OF(64), OF(1024), OF(1025), OF(-1)}));
#if HIP_VERSION_MAJOR >= 7
    each("hipOccupancyAvailableDynamicSMemPerBlock", [](size_t* to, const void* of, int blocks, int block) { return hipOccupancyAvailableDynamicSMemPerBlock(to, of, blocks, block); }, nothing, any<size_t*>({OF(&r.size), OF(nullptr)}), functions, any<int>({OF(1), OF(0), OF(4), OF(-1)}), any<int>({OF(64), OF(0), OF(1024), OF(1025)}));
#endif

    // The code object of this program is a bundle in its own file.
    static const unsigned char garbage[4096] = {1, 2, 3};
    static std::string file;
    {
        std::ifstream self("/proc/self/exe", std::ios::binary);
        const std::string all{std::istreambuf_iterator<char>(self), {}};
        const size_t at = all.find(std::string("__CLANG_OFFLOAD_") + "BUNDLE__");
        file = at == std::string::npos ? "" : all.substr(at);
    }
    each(FUNCTION(hipModuleLoad), [] { hipModuleUnload(results.module); }, any<hipModule_t*>({OF(&r.module), OF(nullptr)}), any<const char*>({OF("/nowhere"), OF(""), OF("/"), OF("/dev/null"), OF(nullptr)}));
    each(FUNCTION(hipModuleLoadData), [] { hipModuleUnload(results.module); }, any<hipModule_t*>({OF(&r.module), OF(nullptr)}), any<const void*>({{"code", file.data()}, OF(garbage), OF(nullptr)}));
    each(FUNCTION(hipModuleLoadDataEx), [] { hipModuleUnload(results.module); }, any<hipModule_t*>({OF(&r.module), OF(nullptr)}), any<const void*>({{"code", file.data()}, OF(garbage), OF(nullptr)}), any<unsigned>({OF(0)}), any<hipJitOption*>({OF(nullptr)}), any<void**>({OF(nullptr)}));
    static hipModule_t module;
    hipModuleLoadData(&module, file.data());
    hipFunction_t function = nullptr, small = nullptr;
    hipModuleGetFunction(&function, module, "_Z6kernelPi");
    hipModuleGetFunction(&small, module, "_Z10at_most_64Pi");
    auto modules = any<hipModule_t>({OF(module), OF(nullptr)});
    each(FUNCTION(hipModuleGetFunction), nothing, any<hipFunction_t*>({OF(&r.function), OF(nullptr)}), modules, any<const char*>({OF("_Z6kernelPi"), OF("kernel"), OF(""), OF("symbol"), OF(nullptr)}));
    each(FUNCTION(hipModuleGetGlobal), nothing, any<hipDeviceptr_t*>({OF(&r.pointer), OF(nullptr)}), any<size_t*>({OF(&r.size), OF(nullptr)}), modules, any<const char*>({OF("symbol"), OF("_Z6kernelPi"), OF("nothing"), OF(""), OF(nullptr)}));
    each(FUNCTION(hipModuleUnload), nothing, any<hipModule_t>({OF(nullptr)}));
    auto kernels = any<hipFunction_t>({{"kernel", function}, {"at_most_64", small}, OF(nullptr)});
    for (int attribute = -1; attribute < 12; ++attribute) {
        // Registers and sizes of code are counted by each runtime.
        if (attribute == HIP_FUNC_ATTRIBUTE_NUM_REGS || attribute == HIP_FUNC_ATTRIBUTE_BINARY_VERSION || attribute == HIP_FUNC_ATTRIBUTE_PTX_VERSION || attribute == HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES) continue;
        static std::string names[16];
        each((names[attribute + 1] = "hipFuncGetAttribute " + std::to_string(attribute)).c_str(), [=](int* to, hipFunction_t of) { return hipFuncGetAttribute(to, hipFunction_attribute(attribute), of); }, nothing, any<int*>({OF(&r.number), OF(nullptr)}), kernels);
    }
    static int* none = nullptr;
    static size_t length = sizeof none;
    static void* packed[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &none, HIP_LAUNCH_PARAM_BUFFER_SIZE, &length, HIP_LAUNCH_PARAM_END};
    static void* unfinished[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &none, HIP_LAUNCH_PARAM_END};
    auto extent = any<unsigned>({OF(1), OF(0), OF(64), OF(0x80000000u)});
    auto side = any<unsigned>({OF(1), OF(0), OF(64), OF(1024), OF(1025)});
    each("hipModuleLaunchKernel", [](hipFunction_t of, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned lds, hipStream_t on, void** with, void** extra) { return hipModuleLaunchKernel(of, gx, gy, gz, bx, by, bz, lds, on, with, extra); }, settle, kernels, any<unsigned>({OF(1), OF(0), OF(64)}), extent, extent, side, side, side, any<unsigned>({OF(0), OF(65536), OF(65537)}), streams, any<void**>({OF(parameters)}), any<void**>({OF(nullptr), OF(packed)}));
    each("hipModuleLaunchKernel", [](hipFunction_t of, void** with, void** extra) { return hipModuleLaunchKernel(of, 1, 1, 1, 1, 1, 1, 0, nullptr, with, extra); }, settle, kernels, any<void**>({OF(nullptr), OF(parameters)}), any<void**>({OF(packed), OF(unfinished), OF(packed + 2), OF(packed + 4)}));
    each("hipExtModuleLaunchKernel", [](hipFunction_t of, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, size_t lds, hipStream_t on, void** with) { return hipExtModuleLaunchKernel(of, gx, gy, gz, bx, by, bz, lds, on, with, nullptr); }, settle, kernels, any<uint32_t>({OF(1), OF(0), OF(64)}), any<uint32_t>({OF(1), OF(0), OF(64)}), any<uint32_t>({OF(1), OF(0)}), side, side, side, any<size_t>({OF(0), OF(65536), OF(65537)}), streams, any<void**>({OF(parameters)}));
    each("hipModuleLaunchCooperativeKernel", [](hipFunction_t of, unsigned gx, unsigned gy, unsigned bx, unsigned by, unsigned lds, hipStream_t on) { return hipModuleLaunchCooperativeKernel(of, gx, gy, 1, bx, by, 1, lds, on, parameters); }, settle, kernels, any<unsigned>({OF(1), OF(0), OF(64)}), any<unsigned>({OF(1), OF(0)}), side, side, any<unsigned>({OF(0), OF(65536), OF(65537)}), streams);
    each("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", [](int* to, hipFunction_t of, int block, size_t bytes) { return hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(to, of, block, bytes); }, nothing, any<int*>({OF(&r.number), OF(nullptr)}), kernels, block_sizes, lds);
    each("hipModuleOccupancyMaxPotentialBlockSize", [](int* grid, int* block, hipFunction_t of, size_t bytes, int limit) { return hipModuleOccupancyMaxPotentialBlockSize(grid, block, of, bytes, limit); }, nothing, any<int*>({OF(&r.number), OF(nullptr)}), any<int*>({OF(&r.other), OF(nullptr)}), kernels, lds, any<int>({OF(0), OF(64), OF(1025), OF(-1)}));
#if HIP_VERSION_MAJOR >= 7
    static hipLaunchConfig_t config;
    each("hipLaunchKernelExC", [](int grid, int block, size_t bytes, hipStream_t on, const void* of, unsigned attributes) {
        config = {};
        config.gridDim = sizes[grid], config.blockDim = sizes[block], config.dynamicSmemBytes = bytes, config.stream = on, config.numAttrs = attributes;
        return hipLaunchKernelExC(&config, of, parameters);
    }, settle, grids, blocks, shared, streams, functions, any<unsigned>({OF(0), OF(1)}));
    ONE(hipLaunchKernelExC(nullptr, reinterpret_cast<const void*>(kernel), parameters), nothing);
#endif
    hipDeviceSynchronize();
    return 0;
}
