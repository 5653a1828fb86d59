// Modules, launches by handle and by the stub's address, occupancy, what compiled programs register.
#include "check.h"

void modules(struct Setup* s) {
    hipModule_t m = NULL;
    hipFunction_t f = NULL;
    void* p = NULL;
    size_t size = 0;
    int n, m2;
    // Longer than any header that is looked for in it.
    static const char garbage[4096] = "no code object";
    GOOD(hipModuleLoad(&m, s->kernels_file));
    BAD(hipModuleLoad(&m, "/no/such/file"));
    BAD(hipModuleLoad(NULL, s->kernels_file));
    BAD(hipModuleLoad(&m, NULL));
    GOOD(hipModuleUnload(m));
    BAD(hipModuleUnload(m));
    BAD(hipModuleUnload(NULL));
    GOOD(hipModuleLoadDataEx(&m, s->kernels, 0, NULL, NULL));
    BAD(hipModuleLoadDataEx(&m, NULL, 0, NULL, NULL));
    GOOD(hipModuleUnload(m));
    GOOD(hipModuleLoadFatBinary(&m, s->kernels));
    BAD(hipModuleLoadFatBinary(NULL, s->kernels));
    GOOD(hipModuleUnload(m));
    BAD(hipModuleLoadData(&m, NULL));
    BAD(hipModuleLoadData(NULL, s->kernels));
    BAD(hipModuleLoadData(&m, garbage));
    GOOD(hipModuleLoadData(&m, s->variables));
    GOOD(hipModuleGetGlobal(&p, &size, m, "coefficients"));
    THAT(size == 32);
    GOOD(hipModuleGetGlobal(NULL, &size, m, "coefficients"));
    BAD(hipModuleGetGlobal(NULL, NULL, m, "coefficients"));
    BAD(hipModuleGetGlobal(&p, &size, m, "no such variable"));
    BAD(hipModuleGetGlobal(&p, &size, m, NULL));
    BAD(hipModuleGetGlobal(&p, &size, (hipModule_t)NOWHERE, "coefficients"));
    GOOD(hipModuleUnload(m));
    GOOD(hipModuleGetFunction(&f, s->module, "matmul"));
    BAD(hipModuleGetFunction(NULL, s->module, "matmul"));
    BAD(hipModuleGetFunction(&f, NULL, "matmul"));
    BAD(hipModuleGetFunction(&f, s->module, NULL));
    BAD(hipModuleGetFunction(&f, s->module, ""));
    BAD(hipModuleGetFunction(&f, s->module, "no such kernel"));
    char* long_name = malloc(100000);
    memset(long_name, 'x', 99999);
    long_name[99999] = 0;
    BAD(hipModuleGetFunction(&f, s->module, long_name));
    free(long_name);
    GOOD(hipGetFuncBySymbol(&f, &saxpy_stub));
    BAD(hipGetFuncBySymbol(NULL, &saxpy_stub));
    BAD(hipGetFuncBySymbol(&f, NULL));
    BAD(hipGetFuncBySymbol(&f, NOWHERE));

    hipFuncAttributes attributes;
    memset(&attributes, 0, sizeof attributes);
    GOOD(hipFuncGetAttributes(&attributes, &saxpy_stub));
    WRITTEN(attributes.numRegs);
    THAT(attributes.maxThreadsPerBlock > 0);
    BAD(hipFuncGetAttributes(NULL, &saxpy_stub));
    BAD(hipFuncGetAttributes(&attributes, NOWHERE));
    GOOD(hipFuncGetAttribute(&n, HIP_FUNC_ATTRIBUTE_NUM_REGS, s->saxpy));
    BAD(hipFuncGetAttribute(NULL, HIP_FUNC_ATTRIBUTE_NUM_REGS, s->saxpy));
    BAD(hipFuncGetAttribute(&n, (hipFunction_attribute)99, s->saxpy));
    BAD(hipFuncGetAttribute(&n, HIP_FUNC_ATTRIBUTE_NUM_REGS, (hipFunction_t)NOWHERE));
    GOOD(hipFuncSetAttribute(&saxpy_stub, hipFuncAttributeMaxDynamicSharedMemorySize, 1024));
    BAD(hipFuncSetAttribute(&saxpy_stub, (hipFuncAttribute)77, 1));
    BAD(hipFuncSetAttribute(NOWHERE, hipFuncAttributeMaxDynamicSharedMemorySize, 1024));
    GOOD(hipFuncSetCacheConfig(&saxpy_stub, hipFuncCachePreferL1));
    BAD(hipFuncSetCacheConfig(&saxpy_stub, (hipFuncCache_t)77));
    BAD(hipFuncSetCacheConfig(NULL, hipFuncCachePreferL1));
    GOOD(hipFuncSetSharedMemConfig(&saxpy_stub, hipSharedMemBankSizeFourByte));
    BAD(hipFuncSetSharedMemConfig(&saxpy_stub, (hipSharedMemConfig)77));

    GOOD(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&n, s->saxpy, 64, 0));
    BAD(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(NULL, s->saxpy, 64, 0));
    BAD(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&n, s->saxpy, -1, 0));
    BAD(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&n, NULL, 64, 0));
    GOOD(hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&n, s->saxpy, 64, 0, 0));
    BAD(hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&n, s->saxpy, 64, 0, 9));
    GOOD(hipModuleOccupancyMaxPotentialBlockSize(&n, &m2, s->saxpy, 0, 0));
    BAD(hipModuleOccupancyMaxPotentialBlockSize(NULL, &m2, s->saxpy, 0, 0));
    GOOD(hipModuleOccupancyMaxPotentialBlockSizeWithFlags(&n, &m2, s->saxpy, 0, 0, 0));
    BAD(hipModuleOccupancyMaxPotentialBlockSizeWithFlags(&n, &m2, s->saxpy, 0, 0, 9));
    GOOD(hipOccupancyMaxActiveBlocksPerMultiprocessor(&n, &saxpy_stub, 64, 0));
    BAD(hipOccupancyMaxActiveBlocksPerMultiprocessor(&n, NOWHERE, 64, 0));
    GOOD(hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&n, &saxpy_stub, 64, 0, 0));
    BAD(hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&n, &saxpy_stub, 64, 0, 2));
    GOOD(hipOccupancyMaxPotentialBlockSize(&n, &m2, &saxpy_stub, 0, 0));
    BAD(hipOccupancyMaxPotentialBlockSize(&n, NULL, &saxpy_stub, 0, 0));
    GOOD(hipOccupancyAvailableDynamicSMemPerBlock(&size, &saxpy_stub, 2, 64));
    BAD(hipOccupancyAvailableDynamicSMemPerBlock(&size, &saxpy_stub, 0, 64));
    BAD(hipOccupancyAvailableDynamicSMemPerBlock(NULL, &saxpy_stub, 2, 64));
}

void launches(struct Setup* s) {
    float a = 2;
    char *x = s->device, *y = s->device + 1024;
    unsigned count = SAXPY_N;
    void *args[] = {&a, &x, &y, &count}, *none[] = {NULL, NULL, NULL, NULL};
    hipFunction_t f = s->saxpy, no_function = (hipFunction_t)NOWHERE;
    hipStream_t st = s->stream, wrong = (hipStream_t)NOWHERE;
    hipEvent_t start, stop;
    dim3 one = {1, 1, 1}, block = {SAXPY_N, 1, 1}, zero = {0, 1, 1};
    GOOD(hipEventCreate(&start));
    GOOD(hipEventCreate(&stop));
    GOOD(hipModuleLaunchKernel(f, 1, 1, 1, SAXPY_N, 1, 1, 0, st, args, NULL));
    BAD(hipModuleLaunchKernel(NULL, 1, 1, 1, SAXPY_N, 1, 1, 0, st, args, NULL));
    BAD(hipModuleLaunchKernel(no_function, 1, 1, 1, SAXPY_N, 1, 1, 0, st, args, NULL));
    BAD(hipModuleLaunchKernel(f, 0, 1, 1, SAXPY_N, 1, 1, 0, st, args, NULL));
    BAD(hipModuleLaunchKernel(f, 1, 1, 1, 4096, 1, 1, 0, st, args, NULL));
    BAD(hipModuleLaunchKernel(f, 1, 1, 1, SAXPY_N, 1, 1, 0xffffffff, st, args, NULL));
    BAD(hipModuleLaunchKernel(f, 1, 1, 1, SAXPY_N, 1, 1, 0, wrong, args, NULL));
    BAD(hipModuleLaunchKernel(f, 1, 1, 1, SAXPY_N, 1, 1, 0, st, NULL, NULL));
    BAD(hipModuleLaunchKernel(f, 1, 1, 1, SAXPY_N, 1, 1, 0, st, none, NULL));
    struct {
        float a;
        unsigned pad;
        void *x, *y;
        unsigned n, end;
    } buffer = {2, 0, x, y, SAXPY_N, 0};
    size_t len = sizeof buffer;
    GOOD(hipConfigureCall(one, block, 0, st));
    GOOD(hipSetupArgument(&buffer.x, 2 * sizeof x, 8));
    GOOD(hipSetupArgument(&buffer.a, sizeof buffer.a, 0));
    GOOD(hipSetupArgument(&buffer.n, sizeof buffer.n, 24));
    FAILS(hipSetupArgument(NULL, 8, 0), hipErrorInvalidValue);
    FAILS(hipSetupArgument(&buffer, 8, SIZE_MAX), hipErrorInvalidValue);
    GOOD(hipLaunchByPtr(&saxpy_stub));
    FAILS(hipSetupArgument(&buffer, 8, 0), hipErrorMissingConfiguration);
    FAILS(hipLaunchByPtr(&saxpy_stub), hipErrorMissingConfiguration);
    GOOD(hipConfigureCall(one, block, 0, st));
    FAILS(hipLaunchByPtr(NOWHERE), hipErrorInvalidDeviceFunction);
    void* extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &buffer, HIP_LAUNCH_PARAM_BUFFER_SIZE, &len, HIP_LAUNCH_PARAM_END};
    void* no_end[] = {NOWHERE, NOWHERE};
    void* no_size[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &buffer, HIP_LAUNCH_PARAM_END};
    GOOD(hipModuleLaunchKernel(f, 1, 1, 1, SAXPY_N, 1, 1, 0, st, NULL, extra));
    BAD(hipModuleLaunchKernel(f, 1, 1, 1, SAXPY_N, 1, 1, 0, st, args, extra));
    BAD(hipModuleLaunchKernel(f, 1, 1, 1, SAXPY_N, 1, 1, 0, st, NULL, no_end));
    BAD(hipModuleLaunchKernel(f, 1, 1, 1, SAXPY_N, 1, 1, 0, st, NULL, no_size));
    GOOD(hipModuleLaunchCooperativeKernel(f, 1, 1, 1, SAXPY_N, 1, 1, 0, st, args));
    BAD(hipModuleLaunchCooperativeKernel(f, 1, 1, 1, 0, 1, 1, 0, st, args));

    GOOD(hipExtModuleLaunchKernel(f, SAXPY_N, 1, 1, SAXPY_N, 1, 1, 0, st, args, NULL, start, stop, 0));
    BAD(hipExtModuleLaunchKernel(f, SAXPY_N, 1, 1, 0, 1, 1, 0, st, args, NULL, start, stop, 0));
    BAD(hipExtModuleLaunchKernel(f, SAXPY_N, 1, 1, SAXPY_N, 1, 1, 0, st, args, NULL, (hipEvent_t)NOWHERE, stop, 0));
    GOOD(_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j(
        f, SAXPY_N, 1, 1, SAXPY_N, 1, 1, 0, st, args, NULL, NULL, NULL, 0));
    GOOD(hipHccModuleLaunchKernel(f, SAXPY_N, 1, 1, SAXPY_N, 1, 1, 0, st, args, NULL, NULL, stop));
    BAD(hipHccModuleLaunchKernel(no_function, SAXPY_N, 1, 1, SAXPY_N, 1, 1, 0, st, args, NULL, NULL, NULL));
    GOOD(_Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_(
        f, SAXPY_N, 1, 1, SAXPY_N, 1, 1, 0, st, args, NULL, NULL, NULL));

    GOOD(hipLaunchKernel(&saxpy_stub, one, block, args, 0, st));
    BAD(hipLaunchKernel(NULL, one, block, args, 0, st));
    BAD(hipLaunchKernel(NOWHERE, one, block, args, 0, st));
    BAD(hipLaunchKernel(&saxpy_stub, zero, block, args, 0, st));
    BAD(hipLaunchKernel(&saxpy_stub, one, block, NULL, 0, st));
    BAD(hipLaunchKernel(&saxpy_stub, one, block, args, SIZE_MAX, st));
    GOOD(hipLaunchKernel_spt(&saxpy_stub, one, block, args, 0, NULL));
    BAD(hipLaunchKernel_spt(&saxpy_stub, one, block, args, 0, wrong));
    GOOD(hipExtLaunchKernel(&saxpy_stub, one, block, args, 0, st, start, stop, 0));
    BAD(hipExtLaunchKernel(&saxpy_stub, one, block, args, 0, st, start, (hipEvent_t)NOWHERE, 0));
    GOOD(hipLaunchCooperativeKernel(&saxpy_stub, one, block, args, 0, st));
    BAD(hipLaunchCooperativeKernel(&saxpy_stub, one, zero, args, 0, st));
    GOOD(hipLaunchCooperativeKernel_spt(&saxpy_stub, one, block, args, 0, NULL));
    BAD(hipLaunchCooperativeKernel_spt(NULL, one, block, args, 0, NULL));
    LaunchAttribute cooperative;
    memset(&cooperative, 0, sizeof cooperative);
    cooperative.id = 2;
    cooperative.cooperative = 1;
    LaunchConfig config = {one, block, 0, st, &cooperative, 1};
    GOOD(hipLaunchKernelExC(&config, &saxpy_stub, args));
    BAD(hipLaunchKernelExC(NULL, &saxpy_stub, args));
    BAD(hipLaunchKernelExC(&config, NULL, args));
    DrvLaunchConfig driver = {1, 1, 1, SAXPY_N, 1, 1, 0, st, NULL, 0};
    GOOD(hipDrvLaunchKernelEx(&driver, f, args, NULL));
    BAD(hipDrvLaunchKernelEx(NULL, f, args, NULL));
    BAD(hipDrvLaunchKernelEx(&driver, NULL, args, NULL));
    GOOD(hipDeviceSynchronize());

    // What a kernel does wrong is told by the next synchronization.
    x = NOWHERE;
    BAD(hipModuleLaunchKernel(f, 1, 1, 1, SAXPY_N, 1, 1, 0, st, args, NULL));
    GOOD(hipDeviceSynchronize());

    dim3 grid_back, block_back;
    size_t shared_back;
    hipStream_t stream_back;
    GOOD(__hipPushCallConfiguration(one, block, 96, st));
    GOOD(__hipPopCallConfiguration(&grid_back, &block_back, &shared_back, &stream_back));
    WRITTEN(grid_back);
    THAT(block_back.x == SAXPY_N && shared_back == 96 && stream_back == st);
    GOOD(__hipPushCallConfiguration(one, block, 96, st));
    GOOD(__hipPopCallConfiguration(NULL, NULL, NULL, NULL));
    GOOD(hipEventDestroy(start));
    GOOD(hipEventDestroy(stop));
}

// As clang writes it into .hipFatBinSegment.
struct Wrapper {
    unsigned magic, version;
    const void* binary;
    void* unused;
};

void symbols(struct Setup* s) {
    static struct Wrapper kernels = {0x48495046, 1, NULL, NULL}, variables = {0x48495046, 1, NULL, NULL};
    static const struct Wrapper strange = {0x12345678, 9, NULL, NULL};
    kernels.binary = s->kernels;
    variables.binary = s->variables;
    s->fat_binary = __hipRegisterFatBinary(&kernels);
    s->variable_binary = __hipRegisterFatBinary(&variables);
    THAT(__hipRegisterFatBinary(NULL) == NULL);
    THAT(__hipRegisterFatBinary(&strange) == NULL);
    static void* managed;
    __hipRegisterFunction(s->fat_binary, &saxpy_stub, "saxpy", "saxpy", ~0u, NULL, NULL, NULL, NULL, NULL);
    __hipRegisterFunction(NULL, &saxpy_stub, "nothing", NULL, ~0u, NULL, NULL, NULL, NULL, NULL);
    __hipRegisterVar(s->variable_binary, (void*)&coefficients_shadow, "coefficients", "coefficients", 0, 32, 1, 0);
    __hipRegisterVar(NOWHERE, NULL, NULL, NULL, 0, 0, 0, 0);
    __hipRegisterManagedVar(NULL, &managed, NULL, NULL, 0, 0);
    __hipRegisterSurface(NULL, NULL, NULL, NULL, 0, 0);
    __hipRegisterTexture(NULL, NULL, NULL, NULL, 0, 0, 0);
    __hipUnregisterFatBinary(NULL);
    __hipUnregisterFatBinary(NOWHERE);

    const void* symbol = &coefficients_shadow;
    void* p = NULL;
    size_t size = 0;
    float values[8];
    GOOD(hipGetSymbolAddress(&p, symbol));
    BAD(hipGetSymbolAddress(NULL, symbol));
    BAD(hipGetSymbolAddress(&p, NOWHERE));
    GOOD(hipGetSymbolSize(&size, symbol));
    THAT(size == sizeof values);
    BAD(hipGetSymbolSize(NULL, symbol));
    BAD(hipGetSymbolSize(&size, NULL));
    GOOD(hipMemcpyFromSymbol(values, symbol, sizeof values, 0, hipMemcpyDeviceToHost));
    WRITTEN(values);
    THAT(values[1] == -2);
    BAD(hipMemcpyFromSymbol(values, symbol, sizeof values, 4, hipMemcpyDeviceToHost));
    BAD(hipMemcpyFromSymbol(NULL, symbol, 4, 0, hipMemcpyDeviceToHost));
    GOOD(hipMemcpyFromSymbolAsync(values, symbol, 4, 0, hipMemcpyDeviceToHost, NULL));
    BAD(hipMemcpyFromSymbolAsync(values, NOWHERE, 4, 0, hipMemcpyDeviceToHost, NULL));
    GOOD(hipMemcpyFromSymbol_spt(values, symbol, 4, 0, hipMemcpyDeviceToHost));
    BAD(hipMemcpyFromSymbol_spt(values, symbol, 4, SIZE_MAX, hipMemcpyDeviceToHost));
    GOOD(hipMemcpyFromSymbolAsync_spt(values, symbol, 4, 0, hipMemcpyDeviceToHost, NULL));
    BAD(hipMemcpyFromSymbolAsync_spt(values, symbol, 4, 0, hipMemcpyHostToDevice, NULL));
    GOOD(hipMemcpyToSymbol(symbol, values, 4, 0, hipMemcpyHostToDevice));
    BAD(hipMemcpyToSymbol(symbol, values, 33, 0, hipMemcpyHostToDevice));
    BAD(hipMemcpyToSymbol(symbol, NULL, 4, 0, hipMemcpyHostToDevice));
    GOOD(hipMemcpyToSymbolAsync(symbol, values, 4, 0, hipMemcpyHostToDevice, NULL));
    BAD(hipMemcpyToSymbolAsync(symbol, values, 4, 0, hipMemcpyDeviceToHost, NULL));
    GOOD(hipMemcpyToSymbol_spt(symbol, values, 4, 0, hipMemcpyHostToDevice));
    BAD(hipMemcpyToSymbol_spt(NULL, values, 4, 0, hipMemcpyHostToDevice));
    GOOD(hipMemcpyToSymbolAsync_spt(symbol, values, 4, 0, hipMemcpyHostToDevice, NULL));
    BAD(hipMemcpyToSymbolAsync_spt(symbol, values, 4, 99, hipMemcpyHostToDevice, NULL));
    GOOD(hipDeviceSynchronize());
}
