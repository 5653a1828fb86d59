// Streams, host functions in their order, events, the functions whose null stream is the thread's own.
#include "check.h"

static int called;

static void host_function(void* data) { *(int*)data += 1; }

static void callback(hipStream_t stream, hipError_t status, void* data) {
    (void)stream;
    *(int*)data += status == hipSuccess;
}

void streams(struct Setup* s) {
    hipStream_t a = NULL, wrong = (hipStream_t)NOWHERE;
    unsigned flags;
    int priority;
    hipDevice_t device;
    unsigned long long id;
    GOOD(hipStreamCreate(&a));
    BAD(hipStreamCreate(NULL));
    GOOD(hipStreamDestroy(a));
    BAD(hipStreamDestroy(a));
    BAD(hipStreamDestroy(NULL));
    BAD(hipStreamDestroy(wrong));
    GOOD(hipStreamCreateWithFlags(&a, hipStreamNonBlocking));
    BAD(hipStreamCreateWithFlags(NULL, 0));
    BAD(hipStreamCreateWithFlags(&a, 99));
    GOOD(hipStreamGetFlags(a, &flags));
    THAT(flags == hipStreamNonBlocking);
    BAD(hipStreamGetFlags(a, NULL));
    BAD(hipStreamGetFlags(wrong, &flags));
    GOOD(hipStreamDestroy(a));
    GOOD(hipStreamCreateWithPriority(&a, 0, -1));
    BAD(hipStreamCreateWithPriority(NULL, 0, 0));
    GOOD(hipStreamGetPriority(a, &priority));
    GOOD(hipStreamGetPriority(NULL, &priority));
    BAD(hipStreamGetPriority(a, NULL));
    BAD(hipStreamGetPriority(wrong, &priority));
    GOOD(hipStreamGetDevice(a, &device));
    BAD(hipStreamGetDevice(a, NULL));
    BAD(hipStreamGetDevice(wrong, &device));
    THAT(hipGetStreamDeviceId(a) == 0);
    THAT(hipGetStreamDeviceId(wrong) == -1);
    GOOD(hipStreamGetId(a, &id));
    BAD(hipStreamGetId(a, NULL));
    BAD(hipStreamGetId(wrong, &id));
    uint32_t units[64];
    GOOD(hipExtStreamGetCUMask(a, 64, units));
    WRITTEN(units[0]);
    BAD(hipExtStreamGetCUMask(a, 0, units));
    BAD(hipExtStreamGetCUMask(a, 64, NULL));
    BAD(hipExtStreamGetCUMask(wrong, 64, units));
    GOOD(hipStreamQuery(a));
    BAD(hipStreamQuery(wrong));
    GOOD(hipStreamSynchronize(a));
    GOOD(hipStreamSynchronize(NULL));
    BAD(hipStreamSynchronize(wrong));
    GOOD(hipStreamWaitEvent(a, s->event, 0));
    BAD(hipStreamWaitEvent(a, NULL, 0));
    BAD(hipStreamWaitEvent(a, (hipEvent_t)NOWHERE, 0));
    BAD(hipStreamWaitEvent(wrong, s->event, 0));
    BAD(hipStreamWaitEvent(a, s->event, 99));
    hipStreamCaptureStatus capturing;
    hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
    GOOD(hipStreamIsCapturing(a, &capturing));
    BAD(hipStreamIsCapturing(a, NULL));
    GOOD(hipStreamGetCaptureInfo(a, &capturing, &id));
    GOOD(hipStreamGetCaptureInfo(a, &capturing, NULL));
    BAD(hipStreamGetCaptureInfo(a, NULL, &id));
    GOOD(hipThreadExchangeStreamCaptureMode(&mode));
    THAT(mode == hipStreamCaptureModeGlobal);
    GOOD(hipThreadExchangeStreamCaptureMode(&mode));
    THAT(mode == hipStreamCaptureModeRelaxed);
    mode = (hipStreamCaptureMode)9;
    BAD(hipThreadExchangeStreamCaptureMode(&mode));
    BAD(hipThreadExchangeStreamCaptureMode(NULL));

    called = 0;
    GOOD(hipLaunchHostFunc(a, host_function, &called));
    BAD(hipLaunchHostFunc(a, NULL, &called));
    BAD(hipLaunchHostFunc(wrong, host_function, &called));
    GOOD(hipStreamAddCallback(a, callback, &called, 0));
    BAD(hipStreamAddCallback(a, NULL, &called, 0));
    BAD(hipStreamAddCallback(a, callback, &called, 5));
    BAD(hipStreamAddCallback(wrong, callback, &called, 0));
    GOOD(hipStreamSynchronize(a));
    THAT(called == 2);
    GOOD(hipStreamDestroy(a));
    uint32_t mask[] = {0xff, 0};
    GOOD(hipExtStreamCreateWithCUMask(&a, 2, mask));
    BAD(hipExtStreamCreateWithCUMask(&a, 0, mask));
    BAD(hipExtStreamCreateWithCUMask(&a, 2, NULL));
    BAD(hipExtStreamCreateWithCUMask(NULL, 2, mask));
    GOOD(hipStreamDestroy(a));
}

void per_thread_streams(struct Setup* s) {
    char *d = s->device, *h = s->host, back[64];
    hipStream_t wrong = (hipStream_t)NOWHERE;
    unsigned flags;
    int priority;
    unsigned long long id;
    hipStreamCaptureStatus capturing;
    GOOD(hipMemcpy_spt(d, h, 64, hipMemcpyHostToDevice));
    BAD(hipMemcpy_spt(NULL, h, 64, hipMemcpyHostToDevice));
    GOOD(hipMemcpyAsync_spt(back, d, sizeof back, hipMemcpyDeviceToHost, NULL));
    BAD(hipMemcpyAsync_spt(back, d, sizeof back, hipMemcpyDeviceToHost, wrong));
    GOOD(hipMemcpy2D_spt(d, 64, h, 32, 16, 4, hipMemcpyHostToDevice));
    BAD(hipMemcpy2D_spt(d, 4, h, 32, 16, 4, hipMemcpyHostToDevice));
    GOOD(hipMemcpy2DAsync_spt(d, 64, h, 32, 16, 4, hipMemcpyHostToDevice, NULL));
    BAD(hipMemcpy2DAsync_spt(d, 64, NULL, 32, 16, 4, hipMemcpyHostToDevice, NULL));
    struct hipMemcpy3DParms box;
    memset(&box, 0, sizeof box);
    box.srcPtr = (hipPitchedPtr){h, 32, 32, 4};
    box.dstPtr = (hipPitchedPtr){d, 64, 64, 4};
    box.extent = (hipExtent){16, 4, 2};
    box.kind = hipMemcpyHostToDevice;
    GOOD(hipMemcpy3D_spt(&box));
    BAD(hipMemcpy3D_spt(NULL));
    GOOD(hipMemcpy3DAsync_spt(&box, NULL));
    BAD(hipMemcpy3DAsync_spt(NULL, NULL));
    hipPitchedPtr place = {d, 64, 64, 4};
    hipExtent extent = {16, 4, 2};
    GOOD(hipMemset_spt(d, 1, 64));
    BAD(hipMemset_spt(NOWHERE, 1, 64));
    GOOD(hipMemsetAsync_spt(d, 1, 64, NULL));
    BAD(hipMemsetAsync_spt(d, 1, 64, wrong));
    GOOD(hipMemset2D_spt(d, 64, 1, 16, 4));
    BAD(hipMemset2D_spt(NULL, 64, 1, 16, 4));
    GOOD(hipMemset2DAsync_spt(d, 64, 1, 16, 4, NULL));
    BAD(hipMemset2DAsync_spt(d, 64, 1, 16, 4, wrong));
    GOOD(hipMemset3D_spt(place, 1, extent));
    BAD(hipMemset3D_spt((hipPitchedPtr){NULL, 64, 64, 4}, 1, extent));
    GOOD(hipMemset3DAsync_spt(place, 1, extent, NULL));
    BAD(hipMemset3DAsync_spt(place, 1, extent, wrong));
    GOOD(hipEventRecord_spt(s->event, NULL));
    BAD(hipEventRecord_spt(NULL, NULL));
    GOOD(hipStreamGetFlags_spt(NULL, &flags));
    BAD(hipStreamGetFlags_spt(NULL, NULL));
    GOOD(hipStreamGetPriority_spt(NULL, &priority));
    BAD(hipStreamGetPriority_spt(wrong, &priority));
    GOOD(hipStreamWaitEvent_spt(NULL, s->event, 0));
    BAD(hipStreamWaitEvent_spt(NULL, NULL, 0));
    GOOD(hipStreamIsCapturing_spt(NULL, &capturing));
    BAD(hipStreamIsCapturing_spt(NULL, NULL));
    GOOD(hipStreamGetCaptureInfo_spt(NULL, &capturing, &id));
    BAD(hipStreamGetCaptureInfo_spt(NULL, NULL, &id));
    called = 0;
    GOOD(hipLaunchHostFunc_spt(NULL, host_function, &called));
    BAD(hipLaunchHostFunc_spt(NULL, NULL, &called));
    GOOD(hipStreamAddCallback_spt(NULL, callback, &called, 0));
    BAD(hipStreamAddCallback_spt(NULL, NULL, &called, 0));
    GOOD(hipStreamSynchronize_spt(NULL));
    THAT(called == 2);
    BAD(hipStreamSynchronize_spt(wrong));
    GOOD(hipStreamQuery_spt(NULL));
    BAD(hipStreamQuery_spt(wrong));
}

static void shared_events(struct Setup* s) {
    hipEvent_t event = NULL, opened = NULL, wrong = (hipEvent_t)NOWHERE;
    hipIpcEventHandle_t handle, strange;
    memset(&strange, 0xee, sizeof strange);
    GOOD(hipEventCreateWithFlags(&event, hipEventInterprocess | hipEventDisableTiming));
    GOOD(hipIpcGetEventHandle(&handle, event));
    WRITTEN(handle);
    FAILS(hipIpcGetEventHandle(NULL, event), hipErrorInvalidValue);
    FAILS(hipIpcGetEventHandle(&handle, wrong), hipErrorInvalidValue);
    FAILS(hipIpcGetEventHandle(&handle, NULL), hipErrorInvalidValue);
    FAILS(hipIpcGetEventHandle(&handle, s->event), hipErrorInvalidConfiguration);
    GOOD(hipIpcOpenEventHandle(&opened, handle));
    FAILS(hipIpcOpenEventHandle(NULL, handle), hipErrorInvalidValue);
    FAILS(hipIpcOpenEventHandle(&wrong, strange), hipErrorInvalidValue);
    THAT(wrong == (hipEvent_t)NOWHERE);
    GOOD(hipEventRecord(event, s->stream));
    GOOD(hipStreamWaitEvent(NULL, opened, 0));
    GOOD(hipEventSynchronize(opened));
    GOOD(hipEventQuery(opened));
    BAD(hipEventElapsedTime(&(float){0}, event, opened));
    GOOD(hipEventDestroy(event));
    // What was lent lives as long as the borrower has it.
    GOOD(hipEventQuery(opened));
    GOOD(hipEventDestroy(opened));
    FAILS(hipIpcOpenEventHandle(&opened, handle), hipErrorInvalidValue);
}

void events(struct Setup* s) {
    hipEvent_t a = NULL, b = NULL, untimed = NULL, wrong = (hipEvent_t)NOWHERE;
    float ms;
    GOOD(hipEventCreate(&a));
    BAD(hipEventCreate(NULL));
    GOOD(hipEventCreateWithFlags(&b, hipEventBlockingSync));
    GOOD(hipEventCreateWithFlags(&untimed, hipEventDisableTiming));
    BAD(hipEventCreateWithFlags(NULL, 0));
    BAD(hipEventCreateWithFlags(&b, 0xffff));
    GOOD(hipEventQuery(a));
    GOOD(hipEventSynchronize(a));
    BAD(hipEventElapsedTime(&ms, a, b));
    GOOD(hipEventRecord(a, s->stream));
    BAD(hipEventRecord(NULL, s->stream));
    BAD(hipEventRecord(wrong, s->stream));
    BAD(hipEventRecord(a, (hipStream_t)NOWHERE));
    GOOD(hipEventRecordWithFlags(b, s->stream, 0));
    BAD(hipEventRecordWithFlags(b, s->stream, 55));
    GOOD(hipEventRecord(untimed, s->stream));
    GOOD(hipEventSynchronize(b));
    BAD(hipEventSynchronize(NULL));
    BAD(hipEventSynchronize(wrong));
    GOOD(hipEventQuery(a));
    BAD(hipEventQuery(wrong));
    GOOD(hipEventElapsedTime(&ms, a, b));
    WRITTEN(ms);
    BAD(hipEventElapsedTime(NULL, a, b));
    BAD(hipEventElapsedTime(&ms, NULL, b));
    BAD(hipEventElapsedTime(&ms, a, untimed));
    GOOD(hipEventDestroy(a));
    BAD(hipEventDestroy(a));
    BAD(hipEventDestroy(NULL));
    GOOD(hipEventDestroy(b));
    GOOD(hipEventDestroy(untimed));
    shared_events(s);
}
