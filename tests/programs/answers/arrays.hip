// Arrays, textures and surfaces.
#include "../answers.h"

#include <hip/hip_gl_interop.h>

using namespace answers;

int main(int count, char** arguments) {
    begin(count, arguments);
    Results& r = results;
    static char host[4096];
    char* device = nullptr;
    hipMalloc(&device, 4096);
    hipStream_t stream;
    hipStreamCreate(&stream);
    auto streams = any<hipStream_t>({OF(stream), OF(nullptr), OF(hipStreamPerThread)});

    static hipChannelFormatDesc float1{32, 0, 0, 0, hipChannelFormatKindFloat}, char4{8, 8, 8, 8, hipChannelFormatKindUnsigned}, wrong{7, 0, 0, 0, hipChannelFormatKindSigned}, three{8, 8, 8, 0, hipChannelFormatKindUnsigned}, none{};
    auto formats = any<const hipChannelFormatDesc*>({OF(&float1), OF(&char4), OF(&wrong), OF(&three), OF(&none), OF(nullptr)});
    static hipArray_t array;
    auto to_array = any<hipArray_t*>({OF(&array), OF(nullptr)});
    auto free_array = [] { hipFreeArray(array); };
    auto array_flags = any<unsigned>({OF(hipArrayDefault), OF(hipArraySurfaceLoadStore), OF(hipArrayLayered), OF(hipArrayCubemap), OF(hipArrayTextureGather), OF(0x100)});
    each("hipMallocArray", [](hipArray_t* to, const hipChannelFormatDesc* format, size_t width, size_t height, unsigned flags) { return hipMallocArray(to, format, width, height, flags); }, free_array, to_array, formats, any<size_t>({OF(64), OF(0), OF(1 << 20)}), any<size_t>({OF(16), OF(0)}), array_flags);
    each("hipMalloc3DArray", [](hipArray_t* to, const hipChannelFormatDesc* format, size_t width, size_t height, size_t depth, unsigned flags) { return hipMalloc3DArray(to, format, hipExtent{width, height, depth}, flags); }, free_array, to_array, formats, any<size_t>({OF(64), OF(0)}), any<size_t>({OF(16), OF(0)}), any<size_t>({OF(4), OF(0)}), array_flags);
    static HIP_ARRAY_DESCRIPTOR flat;
    each("hipArrayCreate", [](hipArray_t* to, bool is_null, size_t width, size_t height, int format, unsigned channels) {
        flat = {width, height, hipArray_Format(format), channels};
        return hipArrayCreate(to, is_null ? nullptr : &flat);
    }, free_array, to_array, any<bool>({OF(false), OF(true)}), any<size_t>({OF(64), OF(0)}), any<size_t>({OF(16), OF(0)}), any<int>({OF(HIP_AD_FORMAT_FLOAT), OF(HIP_AD_FORMAT_UNSIGNED_INT8), OF(0), OF(99)}), any<unsigned>({OF(1), OF(0), OF(3), OF(4), OF(5)}));
    static HIP_ARRAY3D_DESCRIPTOR deep;
    each("hipArray3DCreate", [](hipArray_t* to, bool is_null, size_t width, size_t height, size_t depth, int format, unsigned channels, unsigned flags) {
        deep = {width, height, depth, hipArray_Format(format), channels, flags};
        return hipArray3DCreate(to, is_null ? nullptr : &deep);
    }, free_array, to_array, any<bool>({OF(false), OF(true)}), any<size_t>({OF(64), OF(0)}), any<size_t>({OF(16), OF(0)}), any<size_t>({OF(4), OF(0)}), any<int>({OF(HIP_AD_FORMAT_FLOAT), OF(0), OF(99)}), any<unsigned>({OF(1), OF(0), OF(3)}), array_flags);
    each(FUNCTION(hipFreeArray), nothing, any<hipArray_t>({OF(nullptr)}));
    each(FUNCTION(hipArrayDestroy), nothing, any<hipArray_t>({OF(nullptr)}));
    each("hipArrayGetInfo", [](hipChannelFormatDesc* format, hipExtent* extent, unsigned* flags, hipArray_t of) { return hipArrayGetInfo(format, extent, flags, of); }, nothing, any<hipChannelFormatDesc*>({OF(&none), OF(nullptr)}), any<hipExtent*>({OF(nullptr)}), any<unsigned*>({OF(&r.flags), OF(nullptr)}), any<hipArray_t>({OF(nullptr)}));
    each(FUNCTION(hipArrayGetDescriptor), nothing, any<HIP_ARRAY_DESCRIPTOR*>({OF(&flat), OF(nullptr)}), any<hipArray_t>({OF(nullptr)}));
    each(FUNCTION(hipArray3DGetDescriptor), nothing, any<HIP_ARRAY3D_DESCRIPTOR*>({OF(&deep), OF(nullptr)}), any<hipArray_t>({OF(nullptr)}));
    each(FUNCTION(hipGetChannelDesc), nothing, any<hipChannelFormatDesc*>({OF(&none), OF(nullptr)}), any<hipArray_const_t>({OF(nullptr)}));

    // Copies: there is no array, so their other arguments are what is asked for.
    auto no_array = any<hipArray_t>({OF(nullptr)});
    auto no_source = any<hipArray_const_t>({OF(nullptr)});
    auto memory = any<void*>({OF(device), OF(host), OF(nullptr)});
    auto sources = any<const void*>({OF(device), OF(host), OF(nullptr)});
    auto places = any<size_t>({OF(0), OF(4)});
    auto sizes = any<size_t>({OF(64), OF(0)});
    auto kinds = any<hipMemcpyKind>({OF(hipMemcpyDefault), OF(hipMemcpyHostToDevice), OF(hipMemcpyDeviceToHost), OF(hipMemcpyDeviceToDevice), {"9", hipMemcpyKind(9)}});
    each(FUNCTION(hipMemcpyToArray), settle, no_array, places, places, sources, sizes, kinds);
    each(FUNCTION(hipMemcpyFromArray), settle, memory, no_source, places, places, sizes, kinds);
    each(FUNCTION(hipMemcpy2DToArray), settle, no_array, places, places, sources, any<size_t>({OF(64), OF(0)}), sizes, any<size_t>({OF(1), OF(0)}), kinds);
    each("hipMemcpy2DToArrayAsync", [](hipArray_t to, size_t x, size_t y, const void* from, size_t pitch, size_t width, size_t height, hipMemcpyKind kind, hipStream_t on) { return hipMemcpy2DToArrayAsync(to, x, y, from, pitch, width, height, kind, on); }, settle, no_array, places, places, sources, any<size_t>({OF(64), OF(0)}), sizes, any<size_t>({OF(1), OF(0)}), kinds, streams);
    each(FUNCTION(hipMemcpy2DFromArray), settle, memory, any<size_t>({OF(64), OF(0)}), no_source, places, places, sizes, any<size_t>({OF(1), OF(0)}), kinds);
    each("hipMemcpy2DFromArrayAsync", [](void* to, size_t pitch, hipArray_const_t from, size_t x, size_t y, size_t width, size_t height, hipMemcpyKind kind, hipStream_t on) { return hipMemcpy2DFromArrayAsync(to, pitch, from, x, y, width, height, kind, on); }, settle, memory, any<size_t>({OF(64), OF(0)}), no_source, places, places, sizes, any<size_t>({OF(1), OF(0)}), kinds, streams);
    each(FUNCTION(hipMemcpy2DArrayToArray), settle, no_array, places, places, no_source, places, places, sizes, any<size_t>({OF(1), OF(0)}), kinds);
    each(FUNCTION(hipMemcpyAtoA), settle, no_array, places, no_array, places, sizes);
    each("hipMemcpyAtoD", [](void* to, hipArray_t from, size_t at, size_t size) { return hipMemcpyAtoD(hipDeviceptr_t(to), from, at, size); }, settle, memory, no_array, places, sizes);
    each(FUNCTION(hipMemcpyAtoH), settle, memory, no_array, places, sizes);
    each(FUNCTION(hipMemcpyAtoHAsync), settle, memory, no_array, places, sizes, streams);
    each("hipMemcpyDtoA", [](hipArray_t to, size_t at, void* from, size_t size) { return hipMemcpyDtoA(to, at, hipDeviceptr_t(from), size); }, settle, no_array, places, memory, sizes);
    each(FUNCTION(hipMemcpyHtoA), settle, no_array, places, sources, sizes);
    each(FUNCTION(hipMemcpyHtoAAsync), settle, no_array, places, sources, sizes, streams);

    static hipMipmappedArray_t mipmapped;
    auto to_mipmapped = any<hipMipmappedArray_t*>({OF(&mipmapped), OF(nullptr)});
    auto no_mipmapped = any<hipMipmappedArray_t>({OF(nullptr)});
    each("hipMallocMipmappedArray", [](hipMipmappedArray_t* to, const hipChannelFormatDesc* format, size_t width, unsigned levels, unsigned flags) { return hipMallocMipmappedArray(to, format, hipExtent{width, 16, 0}, levels, flags); }, nothing, to_mipmapped, formats, any<size_t>({OF(64), OF(0)}), any<unsigned>({OF(2), OF(0)}), array_flags);
    each("hipMipmappedArrayCreate", [](hipMipmappedArray_t* to, bool is_null, unsigned levels) {
        deep = {64, 16, 0, HIP_AD_FORMAT_FLOAT, 1, 0};
        return hipMipmappedArrayCreate(to, is_null ? nullptr : &deep, levels);
    }, nothing, to_mipmapped, any<bool>({OF(false), OF(true)}), any<unsigned>({OF(2), OF(0)}));
    each(FUNCTION(hipFreeMipmappedArray), nothing, no_mipmapped);
    each(FUNCTION(hipMipmappedArrayDestroy), nothing, no_mipmapped);
    each(FUNCTION(hipGetMipmappedArrayLevel), nothing, to_array, any<hipMipmappedArray_const_t>({OF(nullptr)}), any<unsigned>({OF(0), OF(1)}));
    each(FUNCTION(hipMipmappedArrayGetLevel), nothing, to_array, no_mipmapped, any<unsigned>({OF(0), OF(1)}));

    static hipResourceDesc resource;
    static hipTextureDesc texture;
    static hipTextureObject_t object;
    each("hipCreateTextureObject", [](hipTextureObject_t* to, bool has_resource, bool has_texture, int type, void* at, size_t bytes, int mode) {
        resource = {};
        resource.resType = hipResourceType(type);
        if (type == hipResourceTypeLinear) resource.res.linear.devPtr = at, resource.res.linear.desc = float1, resource.res.linear.sizeInBytes = bytes;
        if (type == hipResourceTypePitch2D) resource.res.pitch2D.devPtr = at, resource.res.pitch2D.desc = float1, resource.res.pitch2D.width = 16, resource.res.pitch2D.height = 4, resource.res.pitch2D.pitchInBytes = bytes;
        texture = {};
        texture.readMode = hipTextureReadMode(mode);
        return hipCreateTextureObject(to, has_resource ? &resource : nullptr, has_texture ? &texture : nullptr, nullptr);
    }, nothing, any<hipTextureObject_t*>({OF(&object), OF(nullptr)}), any<bool>({OF(true), OF(false)}), any<bool>({OF(true), OF(false)}), any<int>({OF(hipResourceTypeLinear), OF(hipResourceTypeArray), OF(hipResourceTypeMipmappedArray), OF(hipResourceTypePitch2D), OF(9)}), memory, any<size_t>({OF(256), OF(0), OF(1)}), any<int>({OF(hipReadModeElementType), OF(hipReadModeNormalizedFloat)}));
    static HIP_RESOURCE_DESC driver_resource;
    static HIP_TEXTURE_DESC driver_texture;
    each("hipTexObjectCreate", [](hipTextureObject_t* to, bool has_resource, bool has_texture, int type, void* at) {
        driver_resource = {};
        driver_resource.resType = HIPresourcetype(type);
        if (type == HIP_RESOURCE_TYPE_LINEAR) driver_resource.res.linear.devPtr = hipDeviceptr_t(at), driver_resource.res.linear.format = HIP_AD_FORMAT_FLOAT, driver_resource.res.linear.numChannels = 1, driver_resource.res.linear.sizeInBytes = 256;
        driver_texture = {};
        return hipTexObjectCreate(to, has_resource ? &driver_resource : nullptr, has_texture ? &driver_texture : nullptr, nullptr);
    }, nothing, any<hipTextureObject_t*>({OF(&object), OF(nullptr)}), any<bool>({OF(true), OF(false)}), any<bool>({OF(true), OF(false)}), any<int>({OF(HIP_RESOURCE_TYPE_LINEAR), OF(HIP_RESOURCE_TYPE_ARRAY), OF(9)}), memory);
    auto no_texture = any<hipTextureObject_t>({OF(nullptr)});
    static hipResourceViewDesc view;
    each(FUNCTION(hipDestroyTextureObject), nothing, no_texture);
    each(FUNCTION(hipTexObjectDestroy), nothing, no_texture);
    each(FUNCTION(hipGetTextureObjectResourceDesc), nothing, any<hipResourceDesc*>({OF(&resource), OF(nullptr)}), no_texture);
    each(FUNCTION(hipGetTextureObjectResourceViewDesc), nothing, any<hipResourceViewDesc*>({OF(&view), OF(nullptr)}), no_texture);
    each(FUNCTION(hipGetTextureObjectTextureDesc), nothing, any<hipTextureDesc*>({OF(&texture), OF(nullptr)}), no_texture);
    static HIP_RESOURCE_VIEW_DESC driver_view;
    each(FUNCTION(hipTexObjectGetResourceDesc), nothing, any<HIP_RESOURCE_DESC*>({OF(&driver_resource), OF(nullptr)}), no_texture);
    each(FUNCTION(hipTexObjectGetResourceViewDesc), nothing, any<HIP_RESOURCE_VIEW_DESC*>({OF(&driver_view), OF(nullptr)}), no_texture);
    each(FUNCTION(hipTexObjectGetTextureDesc), nothing, any<HIP_TEXTURE_DESC*>({OF(&driver_texture), OF(nullptr)}), no_texture);
    static hipSurfaceObject_t surface;
    each("hipCreateSurfaceObject", [](hipSurfaceObject_t* to, bool has_resource, int type) {
        resource = {};
        resource.resType = hipResourceType(type);
        return hipCreateSurfaceObject(to, has_resource ? &resource : nullptr);
    }, nothing, any<hipSurfaceObject_t*>({OF(&surface), OF(nullptr)}), any<bool>({OF(true), OF(false)}), any<int>({OF(hipResourceTypeArray), OF(hipResourceTypeLinear), OF(9)}));
    each(FUNCTION(hipDestroySurfaceObject), nothing, any<hipSurfaceObject_t>({OF(nullptr)}));
#if HIP_VERSION_MAJOR >= 7
    // The header of release 6.4 declares another function by this name.
    each("hipDeviceGetTexture1DLinearMaxWidth", [](size_t* to, const hipChannelFormatDesc* format, int device) { return hipDeviceGetTexture1DLinearMaxWidth(to, format, device); }, nothing, any<size_t*>({OF(&r.size), OF(nullptr)}), formats, any<int>({OF(0), OF(1), OF(-1)}));
#endif

    // References, as old programs have them.
    static textureReference reference;
    static HIP_ARRAY_DESCRIPTOR shape{16, 4, HIP_AD_FORMAT_FLOAT, 1};
    auto references = any<textureReference*>({OF(&reference), OF(nullptr)});
    auto known = any<const textureReference*>({OF(&reference), OF(nullptr)});
    auto bytes = any<size_t>({OF(256), OF(0)});
    each("hipBindTexture", [](size_t* offset, const textureReference* to, const void* at, const hipChannelFormatDesc* format, size_t size) { return hipBindTexture(offset, to, at, format, size); }, nothing, any<size_t*>({OF(&r.size), OF(nullptr)}), known, sources, formats, bytes);
    each("hipBindTexture2D", [](size_t* offset, const textureReference* to, const void* at, const hipChannelFormatDesc* format, size_t width, size_t pitch) { return hipBindTexture2D(offset, to, at, format, width, 4, pitch); }, nothing, any<size_t*>({OF(&r.size), OF(nullptr)}), known, sources, formats, any<size_t>({OF(16), OF(0)}), bytes);
    each(FUNCTION(hipBindTextureToArray), nothing, known, no_source, formats);
    each(FUNCTION(hipBindTextureToMipmappedArray), nothing, known, any<hipMipmappedArray_const_t>({OF(nullptr)}), formats);
    each(FUNCTION(hipUnbindTexture), nothing, known);
    each(FUNCTION(hipGetTextureAlignmentOffset), nothing, any<size_t*>({OF(&r.size), OF(nullptr)}), known);
    static const textureReference* found;
    each(FUNCTION(hipGetTextureReference), nothing, any<const textureReference**>({OF(&found), OF(nullptr)}), any<const void*>({OF(&reference), OF(nullptr)}));
    static textureReference* named;
    each(FUNCTION(hipModuleGetTexRef), nothing, any<textureReference**>({OF(&named), OF(nullptr)}), any<hipModule_t>({OF(nullptr)}), any<const char*>({OF("name"), OF(""), OF(nullptr)}));
    static float colour[4];
    static hipTextureAddressMode address_mode;
    static hipTextureFilterMode filter;
    static hipArray_Format format;
    each("hipTexRefGetAddress", [](void** to, const textureReference* of) { return hipTexRefGetAddress(reinterpret_cast<hipDeviceptr_t*>(to), of); }, nothing, any<void**>({OF(&r.pointer), OF(nullptr)}), known);
    each(FUNCTION(hipTexRefGetAddressMode), nothing, any<hipTextureAddressMode*>({OF(&address_mode), OF(nullptr)}), known, any<int>({OF(0), OF(2), OF(3), OF(-1)}));
    each(FUNCTION(hipTexRefGetArray), nothing, to_array, known);
    each(FUNCTION(hipTexRefGetBorderColor), nothing, any<float*>({OF(colour), OF(nullptr)}), known);
    each(FUNCTION(hipTexRefGetFilterMode), nothing, any<hipTextureFilterMode*>({OF(&filter), OF(nullptr)}), known);
    each(FUNCTION(hipTexRefGetFlags), nothing, any<unsigned*>({OF(&r.flags), OF(nullptr)}), known);
    each(FUNCTION(hipTexRefGetFormat), nothing, any<hipArray_Format*>({OF(&format), OF(nullptr)}), any<int*>({OF(&r.number), OF(nullptr)}), known);
    each(FUNCTION(hipTexRefGetMaxAnisotropy), nothing, any<int*>({OF(&r.number), OF(nullptr)}), known);
    each(FUNCTION(hipTexRefGetMipMappedArray), nothing, to_mipmapped, known);
    each(FUNCTION(hipTexRefGetMipmapFilterMode), nothing, any<hipTextureFilterMode*>({OF(&filter), OF(nullptr)}), known);
    each(FUNCTION(hipTexRefGetMipmapLevelBias), nothing, any<float*>({OF(&r.time_ms), OF(nullptr)}), known);
    each(FUNCTION(hipTexRefGetMipmapLevelClamp), nothing, any<float*>({OF(&r.time_ms), OF(nullptr)}), any<float*>({OF(colour), OF(nullptr)}), known);
    each("hipTexRefSetAddress", [](size_t* offset, textureReference* to, void* at, size_t size) { return hipTexRefSetAddress(offset, to, hipDeviceptr_t(at), size); }, nothing, any<size_t*>({OF(&r.size), OF(nullptr)}), references, memory, bytes);
    each("hipTexRefSetAddress2D", [](textureReference* to, const HIP_ARRAY_DESCRIPTOR* as, void* at, size_t pitch) { return hipTexRefSetAddress2D(to, as, hipDeviceptr_t(at), pitch); }, nothing, references, any<const HIP_ARRAY_DESCRIPTOR*>({OF(&shape), OF(nullptr)}), memory, bytes);
    each(FUNCTION(hipTexRefSetAddressMode), nothing, references, any<int>({OF(0), OF(2), OF(3), OF(-1)}), any<hipTextureAddressMode>({OF(hipAddressModeWrap), OF(hipAddressModeBorder), {"9", hipTextureAddressMode(9)}}));
    each(FUNCTION(hipTexRefSetArray), nothing, references, no_source, any<unsigned>({OF(HIP_TRSA_OVERRIDE_FORMAT), OF(0)}));
    each(FUNCTION(hipTexRefSetBorderColor), nothing, references, any<float*>({OF(colour), OF(nullptr)}));
    each(FUNCTION(hipTexRefSetFilterMode), nothing, references, any<hipTextureFilterMode>({OF(hipFilterModePoint), OF(hipFilterModeLinear), {"9", hipTextureFilterMode(9)}}));
    each(FUNCTION(hipTexRefSetFlags), nothing, references, any<unsigned>({OF(0), OF(HIP_TRSF_READ_AS_INTEGER), OF(99)}));
    each(FUNCTION(hipTexRefSetFormat), nothing, references, any<hipArray_Format>({OF(HIP_AD_FORMAT_FLOAT), {"99", hipArray_Format(99)}}), any<int>({OF(1), OF(0), OF(3), OF(5)}));
    each(FUNCTION(hipTexRefSetMaxAnisotropy), nothing, references, any<unsigned>({OF(1), OF(99)}));
    each(FUNCTION(hipTexRefSetMipmapFilterMode), nothing, references, any<hipTextureFilterMode>({OF(hipFilterModePoint), {"9", hipTextureFilterMode(9)}}));
    each(FUNCTION(hipTexRefSetMipmapLevelBias), nothing, references, any<float>({OF(0), OF(1)}));
    each(FUNCTION(hipTexRefSetMipmapLevelClamp), nothing, references, any<float>({OF(0), OF(1)}), any<float>({OF(1), OF(0)}));
    each(FUNCTION(hipTexRefSetMipmappedArray), nothing, references, any<hipMipmappedArray*>({OF(nullptr)}), any<unsigned>({OF(HIP_TRSA_OVERRIDE_FORMAT), OF(0)}));

    static unsigned of_gl[1];
    each(FUNCTION(hipGLGetDevices), nothing, any<unsigned*>({OF(&r.flags), OF(nullptr)}), any<int*>({{"of_gl", reinterpret_cast<int*>(of_gl)}, OF(nullptr)}), any<unsigned>({OF(1), OF(0)}), any<hipGLDeviceList>({OF(hipGLDeviceListAll), {"99", hipGLDeviceList(99)}}));
    static hipGraphicsResource* registered;
    each(FUNCTION(hipGraphicsGLRegisterBuffer), nothing, any<hipGraphicsResource**>({OF(&registered), OF(nullptr)}), any<GLuint>({OF(0), OF(1)}), any<unsigned>({OF(hipGraphicsRegisterFlagsNone), OF(99)}));
    each(FUNCTION(hipGraphicsGLRegisterImage), nothing, any<hipGraphicsResource**>({OF(&registered), OF(nullptr)}), any<GLuint>({OF(0), OF(1)}), any<GLenum>({OF(0), OF(0x0DE1)}), any<unsigned>({OF(hipGraphicsRegisterFlagsNone), OF(99)}));
    static hipGraphicsResource_t resources[1];
    each("hipGraphicsMapResources", [](int number, hipGraphicsResource_t* of, hipStream_t on) { return hipGraphicsMapResources(number, of, on); }, nothing, any<int>({OF(1), OF(0), OF(-1)}), any<hipGraphicsResource_t*>({OF(resources), OF(nullptr)}), streams);
    each("hipGraphicsUnmapResources", [](int number, hipGraphicsResource_t* of, hipStream_t on) { return hipGraphicsUnmapResources(number, of, on); }, nothing, any<int>({OF(1), OF(0), OF(-1)}), any<hipGraphicsResource_t*>({OF(resources), OF(nullptr)}), streams);
    each(FUNCTION(hipGraphicsResourceGetMappedPointer), nothing, any<void**>({OF(&r.pointer), OF(nullptr)}), any<size_t*>({OF(&r.size), OF(nullptr)}), any<hipGraphicsResource_t>({OF(nullptr)}));
    each(FUNCTION(hipGraphicsSubResourceGetMappedArray), nothing, to_array, any<hipGraphicsResource_t>({OF(nullptr)}), any<unsigned>({OF(0)}), any<unsigned>({OF(0)}));
    each(FUNCTION(hipGraphicsUnregisterResource), nothing, any<hipGraphicsResource_t>({OF(nullptr)}));
    each("hipMemMapArrayAsync", [](hipArrayMapInfo* maps, unsigned number, hipStream_t on) { return hipMemMapArrayAsync(maps, number, on); }, nothing, any<hipArrayMapInfo*>({OF(nullptr)}), any<unsigned>({OF(0), OF(1)}), streams);
    return 0;
}
