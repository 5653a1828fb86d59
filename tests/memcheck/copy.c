// Copies and fills.
#include "check.h"

static void linear(struct Setup* s) {
    char *d = s->device, *h = s->host;
    hipStream_t wrong = (hipStream_t)NOWHERE;
    GOOD(hipMemcpy(d, h, 4096, hipMemcpyHostToDevice));
    GOOD(hipMemcpy(d, h, 0, hipMemcpyHostToDevice));
    GOOD(hipMemcpy(d + 2048, d, 100, hipMemcpyDeviceToDevice));
    char back[64];
    GOOD(hipMemcpy(back, d + 64, sizeof back, hipMemcpyDeviceToHost));
    WRITTEN(back);
    THAT(memcmp(back, h + 64, sizeof back) == 0);
    BAD(hipMemcpy(NULL, h, 10, hipMemcpyHostToDevice));
    BAD(hipMemcpy(d, NULL, 10, hipMemcpyHostToDevice));
    BAD(hipMemcpy(NOWHERE, h, 10, hipMemcpyHostToDevice));
    BAD(hipMemcpy(back, NOWHERE, sizeof back, hipMemcpyDeviceToHost));
    BAD(hipMemcpy(d + 4090, h, 10, hipMemcpyHostToDevice));
    BAD(hipMemcpy(d, h, 10, (hipMemcpyKind)77));
    // Longer than what is copied into the buffer of small requests, longer than a piece of an answer.
    size_t len = 1 << 20;
    char *big = malloc(len), *same = malloc(len);
    void* there = NULL;
    for (size_t i = 0; i < len; i++) big[i] = (char)(i * 7);
    GOOD(hipMalloc(&there, len));
    GOOD(hipMemcpy(there, big, len, hipMemcpyHostToDevice));
    GOOD(hipMemcpy(same, there, len, hipMemcpyDeviceToHost));
    THAT(memcmp(big, same, len) == 0);
    GOOD(hipFree(there));
    free(big);
    free(same);

    GOOD(hipMemcpyAsync(d, h, 100, hipMemcpyHostToDevice, s->stream));
    BAD(hipMemcpyAsync(d, h, 100, hipMemcpyHostToDevice, wrong));
    BAD(hipMemcpyAsync(d, NULL, 100, hipMemcpyHostToDevice, s->stream));
    GOOD(hipMemcpyWithStream(back, d, sizeof back, hipMemcpyDeviceToHost, s->stream));
    BAD(hipMemcpyWithStream(back, d, sizeof back, hipMemcpyDeviceToHost, wrong));
    GOOD(hipMemcpyHtoD(d, h, 100));
    BAD(hipMemcpyHtoD(NULL, h, 100));
    GOOD(hipMemcpyHtoDAsync(d, h, 100, s->stream));
    BAD(hipMemcpyHtoDAsync(d, NULL, 100, s->stream));
    GOOD(hipMemcpyDtoH(back, d, sizeof back));
    BAD(hipMemcpyDtoH(NULL, d, 64));
    GOOD(hipMemcpyDtoHAsync(back, d, sizeof back, s->stream));
    BAD(hipMemcpyDtoHAsync(back, NOWHERE, sizeof back, s->stream));
    GOOD(hipMemcpyDtoD(d + 1000, d, 100));
    BAD(hipMemcpyDtoD(d, NOWHERE, 100));
    GOOD(hipMemcpyDtoDAsync(d + 1000, d, 100, s->stream));
    BAD(hipMemcpyDtoDAsync(d, d + 8, 100, wrong));
    GOOD(hipMemcpyPeer(d + 1000, 0, d, 0, 100));
    BAD(hipMemcpyPeer(d + 1000, 0, d, 7, 100));
    GOOD(hipMemcpyPeerAsync(d + 1000, 0, d, 0, 100, s->stream));
    BAD(hipMemcpyPeerAsync(NULL, 0, d, 0, 100, s->stream));
    GOOD(hipStreamSynchronize(s->stream));
}

static void planes(struct Setup* s) {
    char *d = s->device, *h = s->host;
    char rows[4 * 64];
    GOOD(hipMemcpy2D(d, 64, h, 32, 16, 4, hipMemcpyHostToDevice));
    memset(rows, 0, sizeof rows);
    GOOD(hipMemcpy2D(rows, 64, d, 64, 16, 4, hipMemcpyDeviceToHost));
    WRITTEN(rows);
    GOOD(hipMemcpy2D(d, 64, h, 32, 0, 4, hipMemcpyHostToDevice));
    BAD(hipMemcpy2D(d, 8, h, 32, 16, 4, hipMemcpyHostToDevice));
    BAD(hipMemcpy2D(NULL, 64, h, 32, 16, 4, hipMemcpyHostToDevice));
    BAD(hipMemcpy2D(d, 64, h, 32, 16, SIZE_MAX, hipMemcpyHostToDevice));
    BAD(hipMemcpy2D(d, 64, h, 64, 16, 65, hipMemcpyHostToDevice));
    GOOD(hipMemcpy2DAsync(d, 64, h, 32, 16, 4, hipMemcpyHostToDevice, s->stream));
    BAD(hipMemcpy2DAsync(d, 64, h, 32, 16, 4, hipMemcpyHostToDevice, (hipStream_t)NOWHERE));

    hip_Memcpy2D plane;
    memset(&plane, 0, sizeof plane);
    plane.srcMemoryType = hipMemoryTypeHost;
    plane.srcHost = h;
    plane.srcPitch = 32;
    plane.dstMemoryType = hipMemoryTypeDevice;
    plane.dstDevice = d;
    plane.dstPitch = 64;
    plane.WidthInBytes = 16;
    plane.Height = 4;
    GOOD(hipMemcpyParam2D(&plane));
    GOOD(hipMemcpyParam2DAsync(&plane, s->stream));
    GOOD(hipDrvMemcpy2DUnaligned(&plane));
    BAD(hipMemcpyParam2D(NULL));
    BAD(hipMemcpyParam2DAsync(NULL, s->stream));
    BAD(hipMemcpyParam2DAsync(&plane, (hipStream_t)NOWHERE));
    BAD(hipDrvMemcpy2DUnaligned(NULL));
    plane.srcMemoryType = hipMemoryTypeArray;
    plane.srcArray = (hipArray_t)NOWHERE;
    BAD(hipMemcpyParam2D(&plane));
}

static void boxes(struct Setup* s) {
    struct hipMemcpy3DParms box;
    memset(&box, 0, sizeof box);
    box.srcPtr = (hipPitchedPtr){s->host, 32, 32, 4};
    box.dstPtr = (hipPitchedPtr){s->device, 64, 64, 4};
    box.extent = (hipExtent){16, 4, 2};
    box.kind = hipMemcpyHostToDevice;
    GOOD(hipMemcpy3D(&box));
    GOOD(hipMemcpy3DAsync(&box, s->stream));
    BAD(hipMemcpy3D(NULL));
    BAD(hipMemcpy3DAsync(NULL, s->stream));
    BAD(hipMemcpy3DAsync(&box, (hipStream_t)NOWHERE));
    box.extent.depth = SIZE_MAX;
    BAD(hipMemcpy3D(&box));
    box.extent.depth = 1;
    box.srcArray = (hipArray_t)NOWHERE;
    BAD(hipMemcpy3D(&box));

    HIP_MEMCPY3D driver;
    memset(&driver, 0, sizeof driver);
    driver.srcMemoryType = hipMemoryTypeDevice;
    driver.srcDevice = s->device;
    driver.srcPitch = 64;
    driver.srcHeight = 4;
    driver.dstMemoryType = hipMemoryTypeHost;
    driver.dstHost = s->host;
    driver.dstPitch = 32;
    driver.dstHeight = 4;
    driver.WidthInBytes = 16;
    driver.Height = 4;
    driver.Depth = 2;
    GOOD(hipDrvMemcpy3D(&driver));
    GOOD(hipDrvMemcpy3DAsync(&driver, s->stream));
    BAD(hipDrvMemcpy3D(NULL));
    BAD(hipDrvMemcpy3DAsync(NULL, s->stream));
    driver.srcMemoryType = (hipMemoryType)77;
    BAD(hipDrvMemcpy3D(&driver));

    Copy3DPeer peer;
    memset(&peer, 0, sizeof peer);
    peer.src = (hipPitchedPtr){s->device, 64, 64, 4};
    peer.dst = (hipPitchedPtr){s->device + 2048, 64, 64, 4};
    peer.extent = (hipExtent){16, 4, 2};
    GOOD(hipMemcpy3DPeer(&peer));
    GOOD(hipMemcpy3DPeerAsync(&peer, s->stream));
    BAD(hipMemcpy3DPeer(NULL));
    BAD(hipMemcpy3DPeerAsync(NULL, s->stream));
    peer.dst_device = 9;
    BAD(hipMemcpy3DPeer(&peer));
    GOOD(hipStreamSynchronize(s->stream));
}

void copies(struct Setup* s) {
    linear(s);
    planes(s);
    boxes(s);
}

void fills(struct Setup* s) {
    char* d = s->device;
    hipStream_t stream = s->stream, wrong = (hipStream_t)NOWHERE;
    hipPitchedPtr box = {d, 64, 64, 4};
    hipExtent extent = {16, 4, 2}, huge = {16, SIZE_MAX, 2};
    GOOD(hipMemset(d, 1, 100));
    GOOD(hipMemset(d, 1, 0));
    BAD(hipMemset(NULL, 1, 100));
    BAD(hipMemset(d, 1, 5000));
    BAD(hipMemset(NOWHERE, 1, 100));
    GOOD(hipMemsetAsync(d, 1, 100, stream));
    BAD(hipMemsetAsync(d, 1, 100, wrong));
    GOOD(hipMemsetD8(d, 1, 100));
    BAD(hipMemsetD8(NULL, 1, 100));
    GOOD(hipMemsetD8Async(d, 1, 100, stream));
    BAD(hipMemsetD8Async(d, 1, 5000, stream));
    GOOD(hipMemsetD16(d, 0x1234, 100));
    BAD(hipMemsetD16(d, 0x1234, SIZE_MAX));
    GOOD(hipMemsetD16Async(d, 0x1234, 100, stream));
    BAD(hipMemsetD16Async(NOWHERE, 0x1234, 100, stream));
    GOOD(hipMemsetD32(d, 0x12345678, 100));
    BAD(hipMemsetD32(d, 0x12345678, SIZE_MAX / 2));
    GOOD(hipMemsetD32Async(d, 0x12345678, 100, stream));
    BAD(hipMemsetD32Async(d, 0x12345678, 100, wrong));
    GOOD(hipMemset2D(d, 64, 5, 16, 4));
    BAD(hipMemset2D(d, 8, 5, 16, 4));
    BAD(hipMemset2D(d, 64, 5, 16, SIZE_MAX));
    GOOD(hipMemset2DAsync(d, 64, 5, 16, 4, stream));
    BAD(hipMemset2DAsync(NULL, 64, 5, 16, 4, stream));
    GOOD(hipMemset3D(box, 5, extent));
    BAD(hipMemset3D(box, 5, huge));
    GOOD(hipMemset3DAsync(box, 5, extent, stream));
    BAD(hipMemset3DAsync(box, 5, extent, wrong));
    GOOD(hipMemsetD2D8(d, 64, 5, 16, 4));
    BAD(hipMemsetD2D8(NULL, 64, 5, 16, 4));
    GOOD(hipMemsetD2D8Async(d, 64, 5, 16, 4, stream));
    BAD(hipMemsetD2D8Async(d, 64, 5, 16, 4, wrong));
    GOOD(hipMemsetD2D16(d, 64, 5, 16, 4));
    BAD(hipMemsetD2D16(NOWHERE, 64, 5, 16, 4));
    GOOD(hipMemsetD2D16Async(d, 64, 5, 16, 4, stream));
    BAD(hipMemsetD2D16Async(d, 64, 5, 16, 999, stream));
    GOOD(hipMemsetD2D32(d, 64, 5, 16, 4));
    BAD(hipMemsetD2D32(d, 64, 5, SIZE_MAX / 2, 4));
    GOOD(hipMemsetD2D32Async(d, 64, 5, 16, 4, stream));
    BAD(hipMemsetD2D32Async(NULL, 64, 5, 16, 4, stream));
    GOOD(hipStreamWriteValue32(stream, d, 7, 0));
    BAD(hipStreamWriteValue32(stream, NULL, 7, 0));
    BAD(hipStreamWriteValue32(wrong, d, 7, 0));
    GOOD(hipStreamWriteValue64(stream, d, 7, 0));
    BAD(hipStreamWriteValue64(stream, NOWHERE, 7, 0));
    GOOD(hipStreamSynchronize(stream));
}
