// The GPU has no images: arrays, mipmapped arrays, textures and surfaces are refused, and what is wrong with a call is told before that.
// Handles of arrays that nobody made are given only to functions that do not look behind them.
#include "runtime.h"

#pragma clang diagnostic ignored "-Wdeprecated-declarations"

extern "C" {
hipError_t hipMemcpy2DToArray_spt(hipArray_t, size_t, size_t, const void*, size_t, size_t, size_t, hipMemcpyKind);
hipError_t hipMemcpy2DToArrayAsync_spt(hipArray_t, size_t, size_t, const void*, size_t, size_t, size_t, hipMemcpyKind, hipStream_t);
hipError_t hipMemcpy2DFromArray_spt(void*, size_t, hipArray_const_t, size_t, size_t, size_t, size_t, hipMemcpyKind);
hipError_t hipMemcpy2DFromArrayAsync_spt(void*, size_t, hipArray_const_t, size_t, size_t, size_t, size_t, hipMemcpyKind, hipStream_t);
hipError_t hipMemcpyFromArray_spt(void*, hipArray_const_t, size_t, size_t, size_t, hipMemcpyKind);
}

__device__ char variable[256]; // stands for a texture reference where one has to be registered

static const hipMemcpyKind kNoKind = static_cast<hipMemcpyKind>(77);
static const hipError_t kRefused = hipErrorNotSupported, kWrong = hipErrorInvalidValue;

static char host[4096];
static char* device = nullptr;
static hipStream_t stream = nullptr;
alignas(16) static char nothing[4096];
static hipArray_t made_up() { return reinterpret_cast<hipArray_t>(nothing); }

static bool is_hipr() { return check::amds_release() == 0; }

// What release 6.4.3 says of a copy of no bytes, which the others carry out.
static hipError_t of_no_bytes() { return check::amds_release() == 6 ? kWrong : hipSuccess; }

static void attributes() {
    std::vector<hipDeviceAttribute_t> absent = {
        hipDeviceAttributeImageSupport, hipDeviceAttributeMaxSurface1D, hipDeviceAttributeMaxTexture1DWidth, hipDeviceAttributeMaxTexture1DLinear,
        hipDeviceAttributeMaxTexture1DMipmap, hipDeviceAttributeMaxTexture2DWidth, hipDeviceAttributeMaxTexture2DHeight,
        hipDeviceAttributeMaxTexture3DWidth, hipDeviceAttributeMaxTexture3DHeight, hipDeviceAttributeMaxTexture3DDepth};
    for (hipDeviceAttribute_t attribute : absent) {
        int value = -1;
        HIP_CHECK(hipDeviceGetAttribute(&value, attribute, 0));
        EXPECT(value == 0);
    }
    hipDeviceProp_t properties;
    HIP_CHECK(hipGetDeviceProperties(&properties, 0));
    EXPECT(properties.maxTexture1D == 0 && properties.maxTexture1DLinear == 0 && properties.maxTexture2D[0] == 0 && properties.maxTexture3D[2] == 0);
}

// The channels of a description that can be an image's, or any array's: equal bits in the first ones.
static int channels(const hipChannelFormatDesc& desc) {
    int bits[5] = {desc.x, desc.y, desc.z, desc.w, 0}, count = 0;
    while (bits[count] != 0 && bits[count] == desc.x) count++;
    for (int rest = count; rest < 4; rest++)
        if (bits[rest] != 0) return 0;
    return count;
}

static void descriptions() {
    hipArray_t array = nullptr;
    hipMipmappedArray_t mipmapped = nullptr;
    const int bits[] = {0, 1, 8, 16, 24, 32, 64};
    for (int kind = -1; kind <= 4; kind++)
        for (int x : bits)
            for (int y : bits)
                for (int z : bits)
                    for (int w : bits) {
                        hipChannelFormatDesc desc = {x, y, z, w, static_cast<hipChannelFormatKind>(kind)};
                        int count = channels(desc);
                        bool is_number = kind == hipChannelFormatKindFloat ? x == 16 || x == 32 : (kind == 0 || kind == 1) && (x == 8 || x == 16 || x == 32);
                        hipError_t wanted = is_number && (count == 1 || count == 2 || count == 4) ? kRefused : kWrong;
                        EXPECT_ERROR(hipMallocArray(&array, &desc, 4, 4, 0), wanted);
                        EXPECT_ERROR(hipMalloc3DArray(&array, &desc, make_hipExtent(4, 4, 4), hipArrayLayered), wanted);
                        EXPECT_ERROR(hipMallocMipmappedArray(&mipmapped, &desc, make_hipExtent(4, 4, 4), 1, 0), count > 0 ? kRefused : kWrong);
                    }
    const std::vector<int> formats = {1, 2, 3, 8, 9, 10, 16, 32};
    for (unsigned count = 0; count < 6; count++)
        for (int format = 0; format <= 64; format++)
            for (unsigned flags = 0; flags < 32; flags++)
                for (unsigned sizes = 0; sizes < 8; sizes++) {
                    size_t width = sizes & 1 ? 4 : 0, height = sizes & 2 ? 4 : 0, depth = sizes & 4 ? 4 : 0;
                    HIP_ARRAY3D_DESCRIPTOR desc = {width, height, depth, static_cast<hipArray_Format>(format), count, flags};
                    bool is_element = std::count(formats.begin(), formats.end(), format) && (count == 1 || count == 2 || count == 4);
                    bool has_flags = !(flags & hipArrayCubemap) && flags < 16 && (!(flags & hipArrayTextureGather) || sizes == 3);
                    EXPECT_ERROR(hipArray3DCreate(&array, &desc), is_element && has_flags ? kRefused : kWrong);
                    HIP_ARRAY_DESCRIPTOR flat = {width, height, static_cast<hipArray_Format>(format), count};
                    if (depth == 0 && flags == 0) EXPECT_ERROR(hipArrayCreate(&array, &flat), is_element ? kRefused : kWrong);
                    if (format != HIP_AD_FORMAT_FLOAT || count != 1) continue;
                    hipChannelFormatDesc channel = hipCreateChannelDesc<float>();
                    EXPECT_ERROR(hipMalloc3DArray(&array, &channel, make_hipExtent(width, height, depth), flags), has_flags ? kRefused : kWrong);
                    if (depth == 0) EXPECT_ERROR(hipMallocArray(&array, &channel, width, height, flags), has_flags ? kRefused : kWrong);
                }
    EXPECT(array == nullptr && mipmapped == nullptr);
}

static void handles() {
    hipArray_t array = nullptr;
    hipMipmappedArray_t mipmapped = nullptr;
    hipChannelFormatDesc desc = hipCreateChannelDesc<float>();
    hipExtent extent = make_hipExtent(4, 4, 4);
    unsigned flags = 0;
    HIP_ARRAY_DESCRIPTOR flat = {4, 4, HIP_AD_FORMAT_FLOAT, 1};
    HIP_ARRAY3D_DESCRIPTOR box = {4, 4, 4, HIP_AD_FORMAT_FLOAT, 1, 0};
    EXPECT_ERROR(hipMallocArray(nullptr, &desc, 4, 4, 0), kWrong);
    EXPECT_ERROR(hipMallocArray(&array, nullptr, 4, 4, 0), kWrong);
    EXPECT_ERROR(hipMalloc3DArray(nullptr, &desc, extent, 0), kWrong);
    EXPECT_ERROR(hipMalloc3DArray(&array, nullptr, extent, 0), kWrong);
    EXPECT_ERROR(hipArrayCreate(nullptr, &flat), kWrong);
    EXPECT_ERROR(hipArrayCreate(&array, nullptr), kWrong);
    EXPECT_ERROR(hipArray3DCreate(nullptr, &box), kWrong);
    EXPECT_ERROR(hipArray3DCreate(&array, nullptr), kWrong);
    for (auto destroy : {hipFreeArray, hipArrayDestroy}) {
        EXPECT_ERROR(destroy(nullptr), kWrong);
        EXPECT_ERROR(destroy(made_up()), hipErrorContextIsDestroyed);
    }
    EXPECT_ERROR(hipArrayGetInfo(&desc, &extent, &flags, nullptr), hipErrorInvalidHandle);
    EXPECT_ERROR(hipArrayGetInfo(nullptr, nullptr, nullptr, nullptr), hipErrorInvalidHandle);
    EXPECT_ERROR(hipArrayGetInfo(nullptr, nullptr, nullptr, made_up()), hipSuccess);
    EXPECT_ERROR(hipArrayGetInfo(&desc, nullptr, nullptr, made_up()), hipErrorInvalidHandle);
    EXPECT_ERROR(hipArrayGetInfo(nullptr, &extent, nullptr, made_up()), hipErrorInvalidHandle);
    EXPECT_ERROR(hipArrayGetInfo(nullptr, nullptr, &flags, made_up()), hipErrorInvalidHandle);
    EXPECT_ERROR(hipArrayGetDescriptor(&flat, nullptr), hipErrorInvalidHandle);
    EXPECT_ERROR(hipArrayGetDescriptor(nullptr, nullptr), hipErrorInvalidHandle);
    EXPECT_ERROR(hipArrayGetDescriptor(nullptr, made_up()), kWrong);
    EXPECT_ERROR(hipArrayGetDescriptor(&flat, made_up()), hipErrorInvalidHandle);
    EXPECT_ERROR(hipArray3DGetDescriptor(&box, nullptr), hipErrorInvalidHandle);
    EXPECT_ERROR(hipArray3DGetDescriptor(nullptr, nullptr), hipErrorInvalidHandle);
    EXPECT_ERROR(hipArray3DGetDescriptor(nullptr, made_up()), kWrong);
    EXPECT_ERROR(hipArray3DGetDescriptor(&box, made_up()), hipErrorInvalidHandle);
    EXPECT_ERROR(hipGetChannelDesc(nullptr, nullptr), kWrong);
    EXPECT_ERROR(hipGetChannelDesc(&desc, nullptr), hipErrorInvalidHandle);
    EXPECT_ERROR(hipGetChannelDesc(nullptr, made_up()), kWrong);
    EXPECT_ERROR(hipGetChannelDesc(&desc, made_up()), kRefused);

    auto none = reinterpret_cast<hipMipmappedArray_t>(nothing);
    EXPECT_ERROR(hipMallocMipmappedArray(nullptr, &desc, extent, 1, 0), kWrong);
    EXPECT_ERROR(hipMallocMipmappedArray(&mipmapped, nullptr, extent, 1, 0), kWrong);
    EXPECT_ERROR(hipMallocMipmappedArray(&mipmapped, &desc, extent, 99, hipArrayCubemap), kRefused);
    EXPECT_ERROR(hipMipmappedArrayCreate(&mipmapped, &box, 1), kRefused);
    EXPECT_ERROR(hipMipmappedArrayCreate(nullptr, nullptr, 99), kRefused);
    for (hipMipmappedArray_t handle : {static_cast<hipMipmappedArray_t>(nullptr), none}) {
        EXPECT_ERROR(hipFreeMipmappedArray(handle), kWrong);
        EXPECT_ERROR(hipMipmappedArrayDestroy(handle), kWrong);
        EXPECT_ERROR(hipGetMipmappedArrayLevel(nullptr, handle, 0), kWrong);
        EXPECT_ERROR(hipMipmappedArrayGetLevel(nullptr, handle, 0), kWrong);
        EXPECT_ERROR(hipGetMipmappedArrayLevel(&array, handle, 0), handle ? kWrong : hipErrorInvalidHandle);
        EXPECT_ERROR(hipMipmappedArrayGetLevel(&array, handle, 0), handle ? kWrong : hipErrorInvalidHandle);
    }
}

// Copies of rows: each combination of a wrong kind, source, pitch, and array; the first of them that is wrong gives the error.
static void rows() {
    const hipMemcpyKind kinds[] = {hipMemcpyHostToHost, hipMemcpyHostToDevice, hipMemcpyDeviceToHost, hipMemcpyDeviceToDevice, hipMemcpyDefault, kNoKind};
    std::vector<hipArray_t> arrays = {nullptr};
    if (is_hipr()) arrays.push_back(made_up());
    for (hipArray_t array : arrays)
        for (hipMemcpyKind kind : kinds)
            for (char* memory : {host, static_cast<char*>(nullptr)})
                for (size_t pitch : {64, 8, 0})
                    for (size_t height : {2, 0}) {
                        hipError_t out = kind == kNoKind ? hipErrorInvalidMemcpyDirection : hipErrorInvalidHandle;
                        hipError_t in = kind == kNoKind ? out : memory == nullptr ? kWrong : pitch < 16 ? hipErrorInvalidPitchValue : hipErrorInvalidHandle;
                        EXPECT_ERROR(hipMemcpy2DToArray(array, 0, 0, memory, pitch, 16, height, kind), in);
                        EXPECT_ERROR(hipMemcpy2DToArray_spt(array, 0, 0, memory, pitch, 16, height, kind), in);
                        EXPECT_ERROR(hipMemcpy2DToArrayAsync(array, 0, 0, memory, pitch, 16, height, kind, stream), in);
                        EXPECT_ERROR(hipMemcpy2DToArrayAsync_spt(array, 0, 0, memory, pitch, 16, height, kind, nullptr), in);
                        EXPECT_ERROR(hipMemcpy2DFromArray(memory, pitch, array, 0, 0, 16, height, kind), out);
                        EXPECT_ERROR(hipMemcpy2DFromArray_spt(memory, pitch, array, 0, 0, 16, height, kind), out);
                        EXPECT_ERROR(hipMemcpy2DFromArrayAsync(memory, pitch, array, 0, 0, 16, height, kind, stream), out);
                        EXPECT_ERROR(hipMemcpy2DFromArrayAsync_spt(memory, pitch, array, 0, 0, 16, height, kind, nullptr), out);
                        EXPECT_ERROR(hipMemcpy2DArrayToArray(array, 0, 0, array, 0, 0, 16, height, kind), out);
                        EXPECT_ERROR(hipMemcpyToArray(array, 0, 0, memory, pitch, kind), kWrong);
                        EXPECT_ERROR(hipMemcpyFromArray(memory, array, 0, 0, pitch, kind), kWrong);
                        EXPECT_ERROR(hipMemcpyFromArray_spt(memory, array, 0, 0, pitch, kind), kWrong);
                    }
    EXPECT_ERROR(hipMemcpy2DToArray(nullptr, 0, 0, host, 0, 0, 2, hipMemcpyHostToDevice), hipErrorInvalidPitchValue);
    EXPECT_ERROR(hipMemcpy2DToArray(nullptr, 0, 0, host, 64, 0, 0, hipMemcpyHostToDevice), hipErrorInvalidHandle);
    for (hipArray_t array : arrays)
        for (size_t count : {16, 0}) {
            hipError_t wanted = count == 0 ? of_no_bytes() : kWrong;
            EXPECT_ERROR(hipMemcpyAtoH(host, array, 0, count), wanted);
            EXPECT_ERROR(hipMemcpyHtoA(array, 0, host, count), wanted);
            EXPECT_ERROR(hipMemcpyAtoA(array, 0, array, 0, count), wanted);
            EXPECT_ERROR(hipMemcpyAtoD(device, array, 0, count), wanted);
            EXPECT_ERROR(hipMemcpyDtoA(array, 0, device, count), wanted);
            EXPECT_ERROR(hipMemcpyAtoH(nullptr, array, 0, count), wanted);
            EXPECT_ERROR(hipMemcpyHtoA(array, 0, nullptr, count), wanted);
            EXPECT_ERROR(hipMemcpyAtoHAsync(host, array, 0, count, stream), wanted);
            EXPECT_ERROR(hipMemcpyHtoAAsync(array, 0, host, count, stream), wanted);
        }
}

// Copies of boxes from structures.
static void boxes() {
    hipPitchedPtr memory = make_hipPitchedPtr(host, 16, 16, 2), narrow = make_hipPitchedPtr(host, 8, 16, 2), none = {};
    hipGraph_t graph = nullptr;
    hipGraphNode_t node = nullptr, copy = nullptr;
    hipGraphExec_t exec = nullptr;
    HIP_CHECK(hipGraphCreate(&graph, 0));
    HIP_CHECK(hipGraphAddMemcpyNode1D(&copy, graph, nullptr, 0, device, host, 16, hipMemcpyHostToDevice));
    HIP_CHECK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    struct Case {
        hipPitchedPtr pointer;
        hipArray_t array;
        hipPitchedPtr other;
        hipMemcpyKind kind;
        hipError_t wanted;
        bool looks; // behind the array, in AMD's runtime
    };
    const Case cases[] = {
        {none, made_up(), none, hipMemcpyDefault, kWrong, false},
        {memory, made_up(), memory, hipMemcpyDefault, kWrong, false},
        {memory, made_up(), narrow, kNoKind, kWrong, false},
        {none, made_up(), narrow, kNoKind, hipErrorInvalidPitchValue, false},
        {none, made_up(), memory, kNoKind, hipErrorInvalidMemcpyDirection, false},
        {none, made_up(), memory, hipMemcpyDefault, kWrong, true},
    };
    for (const Case& c : cases) {
        if (c.looks && !is_hipr()) continue;
        for (bool is_source : {false, true}) {
            hipMemcpy3DParms box = {};
            box.kind = c.kind;
            box.extent = make_hipExtent(16, 2, 1);
            (is_source ? box.srcArray : box.dstArray) = c.array;
            (is_source ? box.srcPtr : box.dstPtr) = c.pointer;
            (is_source ? box.dstPtr : box.srcPtr) = c.other;
            EXPECT_ERROR(hipMemcpy3D(&box), c.wanted);
            EXPECT_ERROR(hipMemcpy3DAsync(&box, stream), c.wanted);
            EXPECT_ERROR(hipGraphAddMemcpyNode(&node, graph, nullptr, 0, &box), c.wanted);
            EXPECT_ERROR(hipGraphMemcpyNodeSetParams(copy, &box), c.wanted);
            EXPECT_ERROR(hipGraphExecMemcpyNodeSetParams(exec, copy, &box), kWrong);
        }
    }
    const hipMemoryType types[] = {hipMemoryTypeHost, hipMemoryTypeDevice, hipMemoryTypeUnified, hipMemoryTypeArray};
    for (hipMemoryType type : types)
        for (bool is_source : {false, true})
            for (size_t width : {16, 0})
                for (size_t height : {2, 0}) {
                    HIP_MEMCPY3D box = {};
                    box.srcMemoryType = is_source ? hipMemoryTypeArray : type;
                    box.dstMemoryType = is_source ? type : hipMemoryTypeArray;
                    box.srcHost = box.dstHost = host;
                    box.srcDevice = box.dstDevice = device;
                    box.srcPitch = box.dstPitch = 16;
                    box.srcHeight = box.dstHeight = 2;
                    box.WidthInBytes = width;
                    box.Height = height;
                    box.Depth = 1;
                    hip_Memcpy2D flat = {};
                    flat.srcMemoryType = box.srcMemoryType;
                    flat.dstMemoryType = box.dstMemoryType;
                    flat.srcHost = flat.dstHost = host;
                    flat.srcDevice = flat.dstDevice = device;
                    flat.srcPitch = flat.dstPitch = 16;
                    flat.WidthInBytes = width;
                    flat.Height = height;
                    hipError_t wanted = width * height > 0 ? kWrong : hipSuccess;
                    EXPECT_ERROR(hipDrvMemcpy3D(&box), wanted);
                    EXPECT_ERROR(hipDrvMemcpy3DAsync(&box, stream), wanted);
                    EXPECT_ERROR(hipMemcpyParam2D(&flat), wanted);
                    EXPECT_ERROR(hipMemcpyParam2DAsync(&flat, stream), wanted);
                    EXPECT_ERROR(hipDrvMemcpy2DUnaligned(&flat), wanted);
                    if (width * height > 0) EXPECT_ERROR(hipDrvGraphAddMemcpyNode(&node, graph, nullptr, 0, &box, nullptr), kWrong);
                }
    size_t nodes = 0;
    HIP_CHECK(hipGraphGetNodes(graph, nullptr, &nodes));
    EXPECT(nodes == 1);
    HIP_CHECK(hipGraphExecDestroy(exec));
    HIP_CHECK(hipGraphDestroy(graph));
}

static void texture_objects() {
    hipTextureObject_t texture = nullptr, other = reinterpret_cast<hipTextureObject_t>(nothing);
    hipSurfaceObject_t surface = nullptr;
    hipResourceDesc resource = {};
    hipTextureDesc desc = {};
    hipResourceViewDesc view = {};
    HIP_RESOURCE_DESC drv_resource = {};
    HIP_TEXTURE_DESC drv_desc = {};
    HIP_RESOURCE_VIEW_DESC drv_view = {};
    resource.resType = hipResourceTypeLinear;
    resource.res.linear.devPtr = device;
    resource.res.linear.desc = hipCreateChannelDesc<float>();
    resource.res.linear.sizeInBytes = 1024;
    for (unsigned given = 0; given < 8; given++) {
        hipTextureObject_t* out = given & 1 ? &texture : nullptr;
        EXPECT_ERROR(hipCreateTextureObject(out, given & 2 ? &resource : nullptr, given & 4 ? &desc : nullptr, nullptr), kRefused);
        EXPECT_ERROR(hipTexObjectCreate(out, given & 2 ? &drv_resource : nullptr, given & 4 ? &drv_desc : nullptr, nullptr), given == 7 ? kRefused : kWrong);
    }
    for (hipTextureObject_t object : {texture, other}) {
        EXPECT_ERROR(hipDestroyTextureObject(object), object ? kRefused : hipSuccess);
        EXPECT_ERROR(hipTexObjectDestroy(object), object ? kRefused : hipSuccess);
        hipError_t wanted = object ? kRefused : kWrong;
        EXPECT_ERROR(hipGetTextureObjectResourceDesc(&resource, object), wanted);
        EXPECT_ERROR(hipGetTextureObjectResourceDesc(nullptr, object), kWrong);
        EXPECT_ERROR(hipGetTextureObjectResourceViewDesc(&view, object), wanted);
        EXPECT_ERROR(hipGetTextureObjectResourceViewDesc(nullptr, object), kWrong);
        EXPECT_ERROR(hipGetTextureObjectTextureDesc(&desc, object), wanted);
        EXPECT_ERROR(hipGetTextureObjectTextureDesc(nullptr, object), kWrong);
        EXPECT_ERROR(hipTexObjectGetResourceDesc(&drv_resource, object), wanted);
        EXPECT_ERROR(hipTexObjectGetResourceDesc(nullptr, object), kWrong);
        EXPECT_ERROR(hipTexObjectGetResourceViewDesc(&drv_view, object), wanted);
        EXPECT_ERROR(hipTexObjectGetResourceViewDesc(nullptr, object), kWrong);
        EXPECT_ERROR(hipTexObjectGetTextureDesc(&drv_desc, object), wanted);
        EXPECT_ERROR(hipTexObjectGetTextureDesc(nullptr, object), kWrong);
    }
    EXPECT_ERROR(hipCreateSurfaceObject(&surface, &resource), kRefused);
    EXPECT_ERROR(hipCreateSurfaceObject(nullptr, nullptr), kRefused);
    EXPECT_ERROR(hipDestroySurfaceObject(nullptr), hipSuccess);
    EXPECT_ERROR(hipDestroySurfaceObject(reinterpret_cast<hipSurfaceObject_t>(nothing)), kWrong);
    if (is_hipr()) EXPECT_ERROR(hipDestroySurfaceObject(reinterpret_cast<hipSurfaceObject_t>(device)), kWrong); // AMD's runtime frees the memory
    EXPECT(texture == nullptr && surface == nullptr);
}

// What a texture reference says of itself and is told.
static void texture_references() {
    textureReference reference = {};
    int number = 0;
    float numbers[4] = {};
    unsigned flags = 0;
    size_t offset = 0;
    hipDeviceptr_t address = nullptr;
    hipArray_t array = nullptr;
    hipMipmappedArray_t mipmapped = nullptr;
    const textureReference* found = nullptr;
    auto mode = reinterpret_cast<hipTextureAddressMode*>(&number);
    auto filter = reinterpret_cast<hipTextureFilterMode*>(&number);
    auto format = reinterpret_cast<hipArray_Format*>(&number);
    HIP_ARRAY_DESCRIPTOR desc = {4, 4, HIP_AD_FORMAT_FLOAT, 1};
    for (textureReference* texture : {&reference, static_cast<textureReference*>(nullptr)}) {
        hipError_t wanted = texture ? kRefused : kWrong, unbound = texture ? hipErrorNotFound : kWrong;
        EXPECT_ERROR(hipUnbindTexture(texture), wanted);
        for (bool has_out : {true, false}) {
            hipError_t of_out = has_out ? wanted : kWrong;
            EXPECT_ERROR(hipTexRefGetAddress(has_out ? &address : nullptr, texture), kWrong);
            EXPECT_ERROR(hipTexRefGetArray(has_out ? &array : nullptr, texture), kWrong);
            EXPECT_ERROR(hipTexRefGetBorderColor(has_out ? numbers : nullptr, texture), of_out);
            EXPECT_ERROR(hipTexRefGetFilterMode(has_out ? filter : nullptr, texture), of_out);
            EXPECT_ERROR(hipTexRefGetFlags(has_out ? &flags : nullptr, texture), of_out);
            EXPECT_ERROR(hipTexRefGetMaxAnisotropy(has_out ? &number : nullptr, texture), of_out);
            EXPECT_ERROR(hipTexRefGetMipmapFilterMode(has_out ? filter : nullptr, texture), of_out);
            EXPECT_ERROR(hipTexRefGetMipmapLevelBias(has_out ? numbers : nullptr, texture), of_out);
            EXPECT_ERROR(hipTexRefGetMipMappedArray(has_out ? &mipmapped : nullptr, texture), of_out);
            EXPECT_ERROR(hipTexRefGetFormat(has_out ? format : nullptr, &number, texture), of_out);
            EXPECT_ERROR(hipTexRefGetFormat(format, has_out ? &number : nullptr, texture), of_out);
            EXPECT_ERROR(hipTexRefGetMipmapLevelClamp(has_out ? numbers : nullptr, numbers, texture), of_out);
            EXPECT_ERROR(hipTexRefGetMipmapLevelClamp(numbers, has_out ? numbers : nullptr, texture), of_out);
            EXPECT_ERROR(hipTexRefSetBorderColor(texture, has_out ? numbers : nullptr), of_out);
            EXPECT_ERROR(hipTexRefSetAddress(has_out ? &offset : nullptr, texture, device, 16), unbound);
            EXPECT_ERROR(hipTexRefSetAddress2D(texture, has_out ? &desc : nullptr, device, 16), has_out ? unbound : kWrong);
            for (int dim = -1; dim <= 3; dim++) EXPECT_ERROR(hipTexRefGetAddressMode(has_out ? mode : nullptr, texture, dim), of_out);
        }
        for (int dim = -1; dim <= 3; dim++)
            EXPECT_ERROR(hipTexRefSetAddressMode(texture, dim, hipAddressModeWrap), dim < 0 || dim > 2 ? kWrong : wanted);
        EXPECT_ERROR(hipTexRefSetFilterMode(texture, hipFilterModePoint), wanted);
        EXPECT_ERROR(hipTexRefSetFlags(texture, 0), wanted);
        EXPECT_ERROR(hipTexRefSetFormat(texture, HIP_AD_FORMAT_FLOAT, 1), wanted);
        EXPECT_ERROR(hipTexRefSetMaxAnisotropy(texture, 0), wanted);
        EXPECT_ERROR(hipTexRefSetMipmapFilterMode(texture, hipFilterModePoint), wanted);
        EXPECT_ERROR(hipTexRefSetMipmapLevelBias(texture, 0), wanted);
        EXPECT_ERROR(hipTexRefSetMipmapLevelClamp(texture, 0, 1), wanted);
        for (hipArray_t given : {static_cast<hipArray_t>(nullptr), made_up()})
            for (unsigned set : {0, HIP_TRSA_OVERRIDE_FORMAT, 2}) {
                hipError_t of_array = given && set == HIP_TRSA_OVERRIDE_FORMAT ? unbound : kWrong;
                EXPECT_ERROR(hipTexRefSetArray(texture, given, set), of_array);
                EXPECT_ERROR(hipTexRefSetMipmappedArray(texture, reinterpret_cast<hipMipmappedArray_t>(given), set), of_array);
            }
    }
    EXPECT_ERROR(hipGetTextureAlignmentOffset(&offset, &reference), kRefused);
    EXPECT_ERROR(hipGetTextureAlignmentOffset(nullptr, &reference), kWrong);
    for (size_t* out : {&offset, static_cast<size_t*>(nullptr)})
        EXPECT_ERROR(hipGetTextureAlignmentOffset(out, nullptr), check::amds_release() == 6 ? kWrong : hipErrorInvalidTexture);
    EXPECT_ERROR(hipGetTextureReference(nullptr, nothing), kWrong);
    EXPECT_ERROR(hipGetTextureReference(&found, nullptr), kRefused);
    EXPECT_ERROR(hipGetTextureReference(&found, nothing), kRefused);
    EXPECT(found == nullptr && array == nullptr && mipmapped == nullptr && address == nullptr);
}

// Binding a reference that the program has registered, or one that it has not.
static void bindings() {
    size_t offset = 0;
    textureReference strange = {};
    hipChannelFormatDesc desc = hipCreateChannelDesc<float>();
    auto known = reinterpret_cast<textureReference*>(variable);
    auto mipmapped = reinterpret_cast<hipMipmappedArray_t>(nothing);
    hipError_t no_memory = check::amds_release() == 6 ? kWrong : hipErrorNotFound;
    for (textureReference* texture : {known, &strange, static_cast<textureReference*>(nullptr)})
        for (char* memory : {device, static_cast<char*>(nullptr)})
            for (hipChannelFormatDesc* format : {&desc, static_cast<hipChannelFormatDesc*>(nullptr)})
                for (size_t* out : {&offset, static_cast<size_t*>(nullptr)}) {
                    hipError_t of_known = !memory ? no_memory : !format ? kWrong : kRefused;
                    EXPECT_ERROR(hipBindTexture(out, texture, memory, format, 16), texture == known ? of_known : hipErrorInvalidSymbol);
                    hipError_t flat = texture == nullptr ? hipErrorUnknown : texture == &strange && memory ? hipErrorInvalidSymbol : of_known;
                    if (check::amds_release() == 6) flat = texture == known ? of_known : hipErrorInvalidSymbol;
                    EXPECT_ERROR(hipBindTexture2D(out, texture, memory, format, 4, 4, 16), flat);
                    hipArray_t array = memory ? made_up() : nullptr;
                    hipError_t to_array = !texture || !array || !format ? kWrong : texture == known ? kRefused : hipErrorInvalidSymbol;
                    EXPECT_ERROR(hipBindTextureToArray(texture, array, format), to_array);
                    hipError_t to_mipmapped = texture != known ? hipErrorInvalidSymbol : !memory || !format ? kWrong : kRefused;
                    EXPECT_ERROR(hipBindTextureToMipmappedArray(texture, memory ? mipmapped : nullptr, format), to_mipmapped);
                }
    textureReference* of_module = nullptr;
    EXPECT_ERROR(hipModuleGetTexRef(nullptr, nullptr, "texture"), kWrong);
    EXPECT_ERROR(hipModuleGetTexRef(&of_module, nullptr, nullptr), kWrong);
    EXPECT_ERROR(hipModuleGetTexRef(&of_module, nullptr, ""), kWrong);
    EXPECT_ERROR(hipModuleGetTexRef(&of_module, nullptr, "texture"), hipErrorInvalidHandle);
    EXPECT(of_module == nullptr);

    // The headers of release 6.4 declare it without the description, and its library does not have it.
    using Width = hipError_t (*)(size_t*, const hipChannelFormatDesc*, int);
    auto width_of = reinterpret_cast<Width>(dlsym(RTLD_DEFAULT, "hipDeviceGetTexture1DLinearMaxWidth"));
    if (width_of == nullptr) return;
    hipChannelFormatDesc bits = {4, 3, 0, 0, hipChannelFormatKindSigned};
    size_t width = 1;
    EXPECT_ERROR(width_of(nullptr, &desc, 0), kWrong);
    EXPECT_ERROR(width_of(&width, nullptr, 99), kWrong);
    EXPECT_ERROR(width_of(&width, &bits, 99), hipErrorInvalidDevice);
    EXPECT_ERROR(width_of(&width, &bits, 0), kWrong);
    EXPECT(width == 1);
    EXPECT_ERROR(width_of(&width, &desc, 0), hipSuccess);
    EXPECT(width == 0);
}

// The call gives this error while a stream is being captured, adds nothing to the graph, and spoils the capture if that forbids it.
#define CAPTURED(mode, call, wanted)                                                                                            \
    do {                                                                                                                        \
        hipError_t expected = wanted;                                                                                           \
        bool spoils = expected == hipErrorStreamCaptureUnsupported || expected == hipErrorStreamCaptureImplicit;                \
        HIP_CHECK(hipStreamBeginCapture(stream, mode));                                                                         \
        EXPECT_ERROR(call, expected);                                                                                           \
        hipGraph_t graph = nullptr;                                                                                             \
        size_t nodes = 0;                                                                                                       \
        EXPECT_ERROR(hipStreamEndCapture(stream, &graph), spoils ? hipErrorStreamCaptureInvalidated : hipSuccess);              \
        EXPECT((graph == nullptr) == spoils);                                                                                   \
        if (graph) HIP_CHECK(hipGraphGetNodes(graph, nullptr, &nodes));                                                         \
        if (graph) HIP_CHECK(hipGraphDestroy(graph));                                                                           \
        EXPECT(nodes == 0);                                                                                                     \
    } while (0)

static void captures() {
    hipArray_t array = nullptr;
    hipMipmappedArray_t mipmapped = nullptr;
    hipChannelFormatDesc desc = hipCreateChannelDesc<float>(), wrong = {};
    HIP_ARRAY_DESCRIPTOR flat = {4, 4, HIP_AD_FORMAT_FLOAT, 1};
    HIP_ARRAY3D_DESCRIPTOR box = {4, 4, 4, HIP_AD_FORMAT_FLOAT, 1, 0};
    hipExtent extent = make_hipExtent(4, 4, 4);
    for (hipStreamCaptureMode mode : {hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal, hipStreamCaptureModeRelaxed}) {
        auto or_not = [&](hipError_t relaxed) { return mode == hipStreamCaptureModeRelaxed ? relaxed : hipErrorStreamCaptureUnsupported; };
        CAPTURED(mode, hipMallocArray(nullptr, &desc, 4, 4, 0), kWrong);
        CAPTURED(mode, hipMallocArray(&array, &desc, 4, 4, 0), or_not(kRefused));
        CAPTURED(mode, hipMallocArray(&array, &wrong, 4, 4, 0), or_not(kWrong));
        CAPTURED(mode, hipMalloc3DArray(&array, &desc, extent, 0), or_not(kRefused));
        CAPTURED(mode, hipArrayCreate(&array, nullptr), kWrong);
        CAPTURED(mode, hipArrayCreate(nullptr, &flat), or_not(kWrong));
        CAPTURED(mode, hipArray3DCreate(&array, nullptr), or_not(kWrong));
        CAPTURED(mode, hipArray3DCreate(&array, &box), or_not(kRefused));
        CAPTURED(mode, hipFreeArray(nullptr), or_not(kWrong));
        CAPTURED(mode, hipArrayDestroy(nullptr), or_not(kWrong));
        CAPTURED(mode, hipArrayGetInfo(nullptr, nullptr, nullptr, nullptr), or_not(hipErrorInvalidHandle));
        CAPTURED(mode, hipArrayGetDescriptor(nullptr, nullptr), or_not(hipErrorInvalidHandle));
        CAPTURED(mode, hipArray3DGetDescriptor(nullptr, nullptr), or_not(hipErrorInvalidHandle));
        CAPTURED(mode, hipGetChannelDesc(nullptr, nullptr), kWrong);
        CAPTURED(mode, hipMallocMipmappedArray(&mipmapped, nullptr, extent, 1, 0), kWrong);
        CAPTURED(mode, hipMallocMipmappedArray(&mipmapped, &wrong, extent, 1, 0), or_not(kWrong));
        CAPTURED(mode, hipMipmappedArrayCreate(&mipmapped, &box, 1), or_not(kRefused));
        CAPTURED(mode, hipFreeMipmappedArray(nullptr), or_not(kWrong));
        CAPTURED(mode, hipMipmappedArrayDestroy(nullptr), or_not(kWrong));
        CAPTURED(mode, hipGetMipmappedArrayLevel(nullptr, nullptr, 0), or_not(kWrong));
        CAPTURED(mode, hipMipmappedArrayGetLevel(nullptr, nullptr, 0), kWrong);
        CAPTURED(mode, hipMemcpy2DToArray(nullptr, 0, 0, host, 64, 16, 2, kNoKind), hipErrorStreamCaptureImplicit);
        CAPTURED(mode, hipMemcpy2DFromArray(host, 64, nullptr, 0, 0, 16, 2, kNoKind), hipErrorStreamCaptureImplicit);
        CAPTURED(mode, hipMemcpy2DArrayToArray(nullptr, 0, 0, nullptr, 0, 0, 16, 2, kNoKind), hipErrorStreamCaptureImplicit);
        CAPTURED(mode, hipMemcpyToArray(nullptr, 0, 0, host, 16, hipMemcpyHostToDevice), hipErrorStreamCaptureImplicit);
        CAPTURED(mode, hipMemcpyFromArray(host, nullptr, 0, 0, 16, hipMemcpyDeviceToHost), hipErrorStreamCaptureImplicit);
        CAPTURED(mode, hipMemcpyAtoH(host, nullptr, 0, 0), hipErrorStreamCaptureImplicit);
        CAPTURED(mode, hipMemcpyHtoA(nullptr, 0, host, 0), hipErrorStreamCaptureImplicit);
        CAPTURED(mode, hipMemcpyAtoA(nullptr, 0, nullptr, 0, 0), hipErrorStreamCaptureImplicit);
        CAPTURED(mode, hipMemcpyDtoA(nullptr, 0, device, 0), hipErrorStreamCaptureImplicit);
        CAPTURED(mode, hipMemcpy2DToArray_spt(nullptr, 0, 0, host, 64, 16, 2, kNoKind), hipErrorStreamCaptureImplicit);
        CAPTURED(mode, hipMemcpy2DFromArray_spt(host, 64, nullptr, 0, 0, 16, 2, kNoKind), hipErrorStreamCaptureImplicit);
        CAPTURED(mode, hipMemcpyFromArray_spt(host, nullptr, 0, 0, 16, hipMemcpyDeviceToHost), hipErrorStreamCaptureImplicit);
        CAPTURED(mode, hipMemcpyAtoD(device, nullptr, 0, 0), of_no_bytes());
        CAPTURED(mode, hipMemcpyAtoHAsync(host, nullptr, 0, 0, stream), kWrong);
        CAPTURED(mode, hipMemcpyHtoAAsync(nullptr, 0, host, 0, stream), kWrong);
        hipError_t no_array = check::amds_release() == 6 ? kWrong : hipErrorInvalidHandle;
        CAPTURED(mode, hipMemcpy2DToArrayAsync(nullptr, 0, 0, nullptr, 0, 16, 2, kNoKind, stream), no_array);
        CAPTURED(mode, hipMemcpy2DFromArrayAsync(nullptr, 0, nullptr, 0, 0, 16, 2, kNoKind, stream), no_array);
    }
}

int main() {
    check::begin("arrays");
    HIP_CHECK(hipMalloc(reinterpret_cast<void**>(&device), sizeof host));
    HIP_CHECK(hipStreamCreate(&stream));
    attributes();
    descriptions();
    handles();
    rows();
    boxes();
    texture_objects();
    texture_references();
    bindings();
    captures();
    (void)hipGetLastError();
    HIP_CHECK(hipStreamDestroy(stream));
    HIP_CHECK(hipFree(device));
    return check::finish();
}
