// Arrays, textures and surfaces, which the emulated GPU does not have: no handle of one exists.
#include "check.h"

static void made_arrays(void) {
    hipArray_t array = NULL;
    hipMipmappedArray_t mipmapped = NULL;
    hipChannelFormatDesc desc = {32, 0, 0, 0, hipChannelFormatKindFloat}, uneven = {32, 16, 0, 0, hipChannelFormatKindFloat};
    hipExtent extent = {4, 4, 4};
    HIP_ARRAY_DESCRIPTOR flat = {4, 4, HIP_AD_FORMAT_FLOAT, 1};
    HIP_ARRAY3D_DESCRIPTOR box = {4, 4, 4, HIP_AD_FORMAT_FLOAT, 1, 0};
    unsigned flags = 0;
    FAILS(hipMallocArray(&array, &desc, 4, 4, 0), hipErrorNotSupported);
    FAILS(hipMallocArray(NULL, &desc, 4, 4, 0), hipErrorInvalidValue);
    FAILS(hipMallocArray(&array, NULL, 4, 4, 0), hipErrorInvalidValue);
    FAILS(hipMalloc3DArray(&array, &desc, extent, 0), hipErrorNotSupported);
    FAILS(hipMalloc3DArray(&array, &uneven, extent, 0), hipErrorInvalidValue);
    FAILS(hipArrayCreate(&array, &flat), hipErrorNotSupported);
    FAILS(hipArrayCreate(NULL, NULL), hipErrorInvalidValue);
    FAILS(hipArray3DCreate(&array, &box), hipErrorNotSupported);
    FAILS(hipArray3DCreate(&array, NULL), hipErrorInvalidValue);
    FAILS(hipFreeArray(NULL), hipErrorInvalidValue);
    FAILS(hipArrayDestroy(NOWHERE), hipErrorContextIsDestroyed);
    FAILS(hipArrayGetInfo(&desc, &extent, &flags, NULL), hipErrorInvalidHandle);
    FAILS(hipArrayGetInfo(&desc, &extent, &flags, NOWHERE), hipErrorInvalidHandle);
    FAILS(hipArrayGetDescriptor(&flat, NOWHERE), hipErrorInvalidHandle);
    FAILS(hipArray3DGetDescriptor(&box, NOWHERE), hipErrorInvalidHandle);
    FAILS(hipGetChannelDesc(&desc, NOWHERE), hipErrorNotSupported);
    FAILS(hipMallocMipmappedArray(&mipmapped, &desc, extent, 1, 0), hipErrorNotSupported);
    FAILS(hipMallocMipmappedArray(&mipmapped, NULL, extent, 1, 0), hipErrorInvalidValue);
    FAILS(hipMipmappedArrayCreate(&mipmapped, &box, 1), hipErrorNotSupported);
    FAILS(hipFreeMipmappedArray(NOWHERE), hipErrorInvalidValue);
    FAILS(hipMipmappedArrayDestroy(NULL), hipErrorInvalidValue);
    FAILS(hipGetMipmappedArrayLevel(&array, NULL, 0), hipErrorInvalidHandle);
    FAILS(hipMipmappedArrayGetLevel(&array, NOWHERE, 0), hipErrorInvalidValue);
}

static void copied_arrays(struct Setup* s) {
    char *h = s->host, *d = s->device;
    hipArray_t array = (hipArray_t)NOWHERE;
    FAILS(hipMemcpy2DToArray(array, 0, 0, h, 64, 16, 2, hipMemcpyHostToDevice), hipErrorInvalidHandle);
    FAILS(hipMemcpy2DToArray_spt(array, 0, 0, h, 8, 16, 2, hipMemcpyHostToDevice), hipErrorInvalidPitchValue);
    FAILS(hipMemcpy2DToArrayAsync(NULL, 0, 0, NULL, 64, 16, 2, hipMemcpyHostToDevice, s->stream), hipErrorInvalidValue);
    FAILS(hipMemcpy2DToArrayAsync_spt(NULL, 0, 0, h, 64, 16, 2, hipMemcpyHostToDevice, NULL), hipErrorInvalidHandle);
    FAILS(hipMemcpy2DFromArray(h, 64, array, 0, 0, 16, 2, hipMemcpyDeviceToHost), hipErrorInvalidHandle);
    FAILS(hipMemcpy2DFromArray_spt(h, 64, array, 0, 0, 16, 2, hipMemcpyDeviceToHost), hipErrorInvalidHandle);
    FAILS(hipMemcpy2DFromArrayAsync(h, 64, array, 0, 0, 16, 2, (hipMemcpyKind)77, s->stream), hipErrorInvalidMemcpyDirection);
    FAILS(hipMemcpy2DFromArrayAsync_spt(h, 64, NULL, 0, 0, 16, 2, hipMemcpyDeviceToHost, NULL), hipErrorInvalidHandle);
    FAILS(hipMemcpy2DArrayToArray(array, 0, 0, array, 0, 0, 16, 2, hipMemcpyDeviceToDevice), hipErrorInvalidHandle);
    FAILS(hipMemcpyToArray(array, 0, 0, h, 16, hipMemcpyHostToDevice), hipErrorInvalidValue);
    FAILS(hipMemcpyFromArray(h, array, 0, 0, 16, hipMemcpyDeviceToHost), hipErrorInvalidValue);
    FAILS(hipMemcpyFromArray_spt(h, array, 0, 0, 16, hipMemcpyDeviceToHost), hipErrorInvalidValue);
    FAILS(hipMemcpyAtoH(h, array, 0, 16), hipErrorInvalidValue);
    FAILS(hipMemcpyHtoA(array, 0, h, 16), hipErrorInvalidValue);
    FAILS(hipMemcpyAtoA(array, 0, array, 0, 16), hipErrorInvalidValue);
    FAILS(hipMemcpyAtoD(d, array, 0, 16), hipErrorInvalidValue);
    FAILS(hipMemcpyDtoA(array, 0, d, 16), hipErrorInvalidValue);
    FAILS(hipMemcpyAtoHAsync(h, array, 0, 16, s->stream), hipErrorInvalidValue);
    FAILS(hipMemcpyHtoAAsync(array, 0, h, 16, s->stream), hipErrorInvalidValue);
    GOOD(hipMemcpyHtoA(array, 0, h, 0));
    hipMemcpy3DParms box = {.srcPtr = {h, 16, 16, 2}, .dstArray = array, .extent = {16, 2, 1}, .kind = hipMemcpyDefault};
    FAILS(hipMemcpy3D(&box), hipErrorInvalidValue);
    HIP_MEMCPY3D drv = {.srcMemoryType = hipMemoryTypeArray, .srcArray = array, .dstMemoryType = hipMemoryTypeHost, .dstHost = h,
                        .WidthInBytes = 16, .Height = 1, .Depth = 1};
    FAILS(hipDrvMemcpy3D(&drv), hipErrorInvalidValue);
}

void arrays(struct Setup* s) {
    made_arrays();
    copied_arrays(s);
}

static void objects(void) {
    hipTextureObject_t texture = NULL;
    hipSurfaceObject_t surface = NULL;
    hipResourceDesc resource = {.resType = hipResourceTypeLinear};
    hipTextureDesc desc = {.normalizedCoords = 0};
    struct hipResourceViewDesc view;
    HIP_RESOURCE_DESC drv_resource = {.flags = 0};
    HIP_TEXTURE_DESC drv_desc = {.flags = 0};
    HIP_RESOURCE_VIEW_DESC drv_view;
    FAILS(hipCreateTextureObject(&texture, &resource, &desc, NULL), hipErrorNotSupported);
    GOOD(hipDestroyTextureObject(NULL));
    FAILS(hipDestroyTextureObject(NOWHERE), hipErrorNotSupported);
    FAILS(hipGetTextureObjectResourceDesc(&resource, NOWHERE), hipErrorNotSupported);
    FAILS(hipGetTextureObjectResourceViewDesc(&view, NOWHERE), hipErrorNotSupported);
    FAILS(hipGetTextureObjectTextureDesc(&desc, NULL), hipErrorInvalidValue);
    FAILS(hipTexObjectCreate(&texture, &drv_resource, &drv_desc, NULL), hipErrorNotSupported);
    FAILS(hipTexObjectCreate(&texture, NULL, &drv_desc, NULL), hipErrorInvalidValue);
    GOOD(hipTexObjectDestroy(NULL));
    FAILS(hipTexObjectGetResourceDesc(&drv_resource, NOWHERE), hipErrorNotSupported);
    FAILS(hipTexObjectGetResourceViewDesc(&drv_view, NOWHERE), hipErrorNotSupported);
    FAILS(hipTexObjectGetTextureDesc(NULL, NOWHERE), hipErrorInvalidValue);
    FAILS(hipCreateSurfaceObject(&surface, &resource), hipErrorNotSupported);
    GOOD(hipDestroySurfaceObject(NULL));
    FAILS(hipDestroySurfaceObject(NOWHERE), hipErrorInvalidValue);
}

static void references(struct Setup* s) {
    textureReference* t = (textureReference*)NOWHERE;
    textureReference* of_module = NULL;
    const textureReference* found = NULL;
    hipChannelFormatDesc desc = {32, 0, 0, 0, hipChannelFormatKindFloat};
    HIP_ARRAY_DESCRIPTOR flat = {4, 4, HIP_AD_FORMAT_FLOAT, 1};
    enum hipTextureAddressMode mode;
    enum hipTextureFilterMode filter;
    hipArray_Format format;
    hipDeviceptr_t address;
    hipArray_t array;
    hipMipmappedArray_t mipmapped;
    size_t offset;
    unsigned flags;
    int number;
    float numbers[4] = {0};
    const textureReference* registered = (const textureReference*)&coefficients_shadow;
    FAILS(hipBindTexture(&offset, registered, s->device, &desc, 16), hipErrorNotSupported);
    FAILS(hipBindTexture(&offset, t, s->device, &desc, 16), hipErrorInvalidSymbol);
    FAILS(hipBindTexture2D(&offset, registered, NULL, &desc, 4, 4, 16), hipErrorNotFound);
    FAILS(hipBindTextureToArray(registered, NOWHERE, &desc), hipErrorNotSupported);
    FAILS(hipBindTextureToMipmappedArray(registered, NULL, &desc), hipErrorInvalidValue);
    FAILS(hipUnbindTexture(t), hipErrorNotSupported);
    FAILS(hipGetTextureAlignmentOffset(&offset, NULL), hipErrorInvalidTexture);
    FAILS(hipGetTextureReference(&found, t), hipErrorNotSupported);
    FAILS(hipModuleGetTexRef(&of_module, s->module, "texture"), hipErrorNotSupported);
    BAD(hipModuleGetTexRef(&of_module, NOWHERE, "texture"));
    FAILS(hipTexRefGetAddress(&address, t), hipErrorInvalidValue);
    FAILS(hipTexRefGetAddressMode(&mode, t, 0), hipErrorNotSupported);
    FAILS(hipTexRefGetArray(&array, t), hipErrorInvalidValue);
    FAILS(hipTexRefGetBorderColor(numbers, t), hipErrorNotSupported);
    FAILS(hipTexRefGetFilterMode(&filter, t), hipErrorNotSupported);
    FAILS(hipTexRefGetFlags(&flags, t), hipErrorNotSupported);
    FAILS(hipTexRefGetFormat(&format, NULL, t), hipErrorInvalidValue);
    FAILS(hipTexRefGetMaxAnisotropy(&number, t), hipErrorNotSupported);
    FAILS(hipTexRefGetMipmapFilterMode(&filter, t), hipErrorNotSupported);
    FAILS(hipTexRefGetMipmapLevelBias(numbers, t), hipErrorNotSupported);
    FAILS(hipTexRefGetMipmapLevelClamp(numbers, numbers, t), hipErrorNotSupported);
    FAILS(hipTexRefGetMipMappedArray(&mipmapped, t), hipErrorNotSupported);
    FAILS(hipTexRefSetAddress(&offset, t, s->device, 16), hipErrorNotFound);
    FAILS(hipTexRefSetAddress2D(t, &flat, s->device, 16), hipErrorNotFound);
    FAILS(hipTexRefSetAddressMode(t, 3, hipAddressModeWrap), hipErrorInvalidValue);
    FAILS(hipTexRefSetArray(t, NOWHERE, HIP_TRSA_OVERRIDE_FORMAT), hipErrorNotFound);
    FAILS(hipTexRefSetBorderColor(t, numbers), hipErrorNotSupported);
    FAILS(hipTexRefSetFilterMode(t, hipFilterModePoint), hipErrorNotSupported);
    FAILS(hipTexRefSetFlags(t, 0), hipErrorNotSupported);
    FAILS(hipTexRefSetFormat(NULL, HIP_AD_FORMAT_FLOAT, 1), hipErrorInvalidValue);
    FAILS(hipTexRefSetMaxAnisotropy(t, 0), hipErrorNotSupported);
    FAILS(hipTexRefSetMipmapFilterMode(t, hipFilterModePoint), hipErrorNotSupported);
    FAILS(hipTexRefSetMipmapLevelBias(t, 0), hipErrorNotSupported);
    FAILS(hipTexRefSetMipmapLevelClamp(t, 0, 1), hipErrorNotSupported);
    FAILS(hipTexRefSetMipmappedArray(t, NOWHERE, 0), hipErrorInvalidValue);

    // The headers of release 6.4 declare it with other parameters.
    hipError_t (*width_of)(size_t*, const hipChannelFormatDesc*, int) =
        (hipError_t (*)(size_t*, const hipChannelFormatDesc*, int))(void (*)(void))hipDeviceGetTexture1DLinearMaxWidth;
    size_t width;
    GOOD(width_of(&width, &desc, 0));
    WRITTEN(width);
    FAILS(width_of(&width, &desc, 7), hipErrorInvalidDevice);
    FAILS(width_of(&width, NULL, 0), hipErrorInvalidValue);
}

void textures(struct Setup* s) {
    objects();
    references(s);
}
