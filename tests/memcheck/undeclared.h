// Exports that the C headers of release 6.4 do not declare: what compiled programs call before main, the older layout
// of the properties, C++ names, and functions of later releases (prototypes from the headers of release 7.2).
#ifndef UNDECLARED_H
#define UNDECLARED_H

uint16_t __gnu_f2h_ieee(float value);
float __gnu_h2f_ieee(uint16_t value);
const char* hipGetCmdName(unsigned id);
size_t amd_dbgapi_get_build_id(void);
const char* amd_dbgapi_get_build_name(void);
const char* amd_dbgapi_get_git_hash(void);

// The structures of release 5: the macros of release 6 hide the names.
#undef hipGetDeviceProperties
#undef hipChooseDevice
typedef struct {
    char name[256];
    uint64_t rest[66];
    int pageable_access, last;
} PropertiesR0000;
_Static_assert(sizeof(PropertiesR0000) == 792, "hipDeviceProp_t of release 5");
hipError_t hipGetDeviceProperties(PropertiesR0000* prop, int device);
hipError_t hipGetDevicePropertiesR0000(PropertiesR0000* prop, int device);
hipError_t hipChooseDevice(int* device, const PropertiesR0000* prop);
hipError_t hipChooseDeviceR0000(int* device, const PropertiesR0000* prop);

void** __hipRegisterFatBinary(const void* wrapper);
void __hipUnregisterFatBinary(void** modules);
void __hipRegisterFunction(void** modules, const void* host_function, char* device_function, const char* device_name,
                           unsigned thread_limit, void* tid, void* bid, dim3* block_dim, dim3* grid_dim, int* warp_size);
void __hipRegisterManagedVar(void* module, void** pointer, void* init_value, const char* name, size_t size, unsigned align);
void __hipRegisterSurface(void** modules, void* var, char* host_var, char* device_var, int type, int ext);
void __hipRegisterTexture(void** modules, void* var, char* host_var, char* device_var, int type, int norm, int ext);
void __hipRegisterVar(void** modules, void* var, char* host_var, char* device_var, int ext, size_t size, int constant, int global);

#define EXT_MODULE_LAUNCH                                                                                              \
    hipFunction_t f, uint32_t global_x, uint32_t global_y, uint32_t global_z, uint32_t local_x, uint32_t local_y,      \
        uint32_t local_z, size_t shared_bytes, hipStream_t stream, void **params, void **extra, hipEvent_t start,      \
        hipEvent_t stop
hipError_t hipExtModuleLaunchKernel(EXT_MODULE_LAUNCH, uint32_t flags);
hipError_t hipHccModuleLaunchKernel(EXT_MODULE_LAUNCH);
hipError_t _Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j(EXT_MODULE_LAUNCH, uint32_t flags);
hipError_t _Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_(EXT_MODULE_LAUNCH);

typedef struct {
    unsigned id, pad;
    int cooperative;
    char rest[60];
} LaunchAttribute;
typedef struct {
    dim3 grid, block;
    size_t shared_bytes;
    hipStream_t stream;
    LaunchAttribute* attributes;
    unsigned attributes_len;
} LaunchConfig;
typedef struct {
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    hipStream_t stream;
    LaunchAttribute* attributes;
    unsigned attributes_len;
} DrvLaunchConfig;
hipError_t hipLaunchKernelExC(const LaunchConfig* config, const void* function, void** args);
hipError_t hipDrvLaunchKernelEx(const DrvLaunchConfig* config, hipFunction_t function, void** params, void** extra);

typedef struct {
    hipArray_t src_array;
    hipPos src_pos;
    hipPitchedPtr src;
    int src_device;
    hipArray_t dst_array;
    hipPos dst_pos;
    hipPitchedPtr dst;
    int dst_device;
    hipExtent extent;
} Copy3DPeer;
hipError_t hipMemcpy3DPeer(Copy3DPeer* copy);
hipError_t hipMemcpy3DPeerAsync(Copy3DPeer* copy, hipStream_t stream);

// hipMemLocationTypeHost, which release 6.4 does not have.
enum { LOCATION_HOST = 2 };
hipError_t hipMemAdvise_v2(const void* dev_ptr, size_t count, hipMemoryAdvise advice, hipMemLocation location);
hipError_t hipMemPrefetchAsync_v2(const void* dev_ptr, size_t count, hipMemLocation location, unsigned flags, hipStream_t stream);

hipError_t hipMemsetD2D8(void* dst, size_t pitch, uint8_t value, size_t width, size_t height);
hipError_t hipMemsetD2D8Async(void* dst, size_t pitch, uint8_t value, size_t width, size_t height, hipStream_t stream);
hipError_t hipMemsetD2D16(void* dst, size_t pitch, uint16_t value, size_t width, size_t height);
hipError_t hipMemsetD2D16Async(void* dst, size_t pitch, uint16_t value, size_t width, size_t height, hipStream_t stream);
hipError_t hipMemsetD2D32(void* dst, size_t pitch, uint32_t value, size_t width, size_t height);
hipError_t hipMemsetD2D32Async(void* dst, size_t pitch, uint32_t value, size_t width, size_t height, hipStream_t stream);

hipError_t hipGetDriverEntryPoint(const char* symbol, void** function, uint64_t flags, int* status);
hipError_t hipGetDriverEntryPoint_spt(const char* symbol, void** function, uint64_t flags, int* status);
hipError_t hipModuleLoadFatBinary(hipModule_t* module, const void* image);
hipError_t hipStreamGetId(hipStream_t stream, unsigned long long* id);
hipError_t hipOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* function, int blocks, int block_size);

// Of release 7.2. The structures are only passed on here.
hipError_t hipMemcpyBatchAsync(void** dsts, void** srcs, size_t* sizes, size_t count, void* attrs, size_t* indices, size_t attr_count,
                               size_t* failed, hipStream_t stream);
hipError_t hipMemcpy3DBatchAsync(size_t count, void* ops, size_t* failed, unsigned long long flags, hipStream_t stream);
hipError_t hipModuleGetFunctionCount(unsigned* count, hipModule_t module);
hipError_t hipStreamGetAttribute(hipStream_t stream, int attr, void* value);
hipError_t hipStreamSetAttribute(hipStream_t stream, int attr, const void* value);
hipError_t hipStreamCopyAttributes(hipStream_t to, hipStream_t from);
hipError_t hipLibraryLoadData(void** library, const void* code, void* jit, void** jit_values, unsigned jit_count, void* options,
                              void** values, unsigned count);
hipError_t hipLibraryLoadFromFile(void** library, const char* path, void* jit, void** jit_values, unsigned jit_count, void* options,
                                  void** values, unsigned count);
hipError_t hipLibraryUnload(void* library);
hipError_t hipLibraryGetKernel(void** kernel, void* library, const char* name);
hipError_t hipLibraryGetKernelCount(unsigned* count, void* library);
hipError_t hipLibraryEnumerateKernels(void** kernels, unsigned count, void* library);
hipError_t hipKernelGetName(const char** name, void* kernel);
hipError_t hipKernelGetLibrary(void** library, void* kernel);
void hipRegisterTracerCallback(void* callback);
hipError_t hipGLGetDevices(unsigned* found, int* devices, unsigned count, int list);
hipError_t hipGraphicsGLRegisterBuffer(void** resource, unsigned buffer, unsigned flags);
hipError_t hipGraphicsGLRegisterImage(void** resource, unsigned image, unsigned target, unsigned flags);

#endif
