// Values that streams wait for, memory of graphs, nodes by the driver API, launches on lists of devices, libraries, graphics.
#include "check.h"

void values(struct Setup* s) {
    uint64_t* at = (uint64_t*)s->device;
    GOOD(hipStreamWriteValue64(s->stream, at, 0x500000006, 0));
    GOOD(hipStreamWaitValue64(s->stream, at, 0x500000006, hipStreamWaitValueEq, ~0ull));
    GOOD(hipStreamWaitValue32(s->stream, at, 6, hipStreamWaitValueGte, ~0u));
    GOOD(hipStreamSynchronize(s->stream));
    FAILS(hipStreamWaitValue32(s->stream, NULL, 0, 0, 0), hipErrorInvalidValue);
    FAILS(hipStreamWaitValue32(s->stream, at, 0, 4, 0), hipErrorInvalidValue);
    FAILS(hipStreamWaitValue64(s->stream, s->host, 0, 0, 0), hipErrorInvalidValue);
    FAILS(hipStreamWaitValue64(NOWHERE, at, 0, 0, 0), hipErrorContextIsDestroyed);
    hipStreamBatchMemOpParams ops[2] = {{0}, {0}};
    ops[0].writeValue.operation = hipStreamMemOpWriteValue32;
    ops[0].writeValue.address = at;
    ops[0].writeValue.value = 9;
    ops[1].waitValue.operation = hipStreamMemOpWaitValue32;
    ops[1].waitValue.address = at;
    ops[1].waitValue.value = 9;
    GOOD(hipStreamBatchMemOp(s->stream, 2, ops, 0));
    GOOD(hipStreamSynchronize(s->stream));
    FAILS(hipStreamBatchMemOp(s->stream, 1, NULL, 0), hipErrorInvalidValue);
    FAILS(hipStreamBatchMemOp(s->stream, 0, ops, 0), hipErrorInvalidValue);
    hipGraph_t graph;
    hipGraphNode_t node = NULL;
    hipGraphExec_t exec;
    hipBatchMemOpNodeParams params = {0}, read;
    GOOD(hipCtxGetCurrent(&params.ctx));
    params.count = 2;
    params.paramArray = ops;
    GOOD(hipGraphCreate(&graph, 0));
    GOOD(hipGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params));
    GOOD(hipGraphBatchMemOpNodeGetParams(node, &read));
    THAT(read.count == 2 && read.paramArray == ops);
    GOOD(hipGraphBatchMemOpNodeSetParams(node, &params));
    GOOD(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    GOOD(hipGraphExecBatchMemOpNodeSetParams(exec, node, &params));
    GOOD(hipGraphLaunch(exec, s->stream));
    GOOD(hipStreamSynchronize(s->stream));
    FAILS(hipGraphAddBatchMemOpNode(&node, graph, NULL, 0, NULL), hipErrorInvalidValue);
    FAILS(hipGraphBatchMemOpNodeGetParams(NOWHERE, &read), hipErrorInvalidValue);
    FAILS(hipGraphBatchMemOpNodeSetParams(node, NULL), hipErrorInvalidValue);
    FAILS(hipGraphExecBatchMemOpNodeSetParams(NOWHERE, node, &params), hipErrorInvalidValue);
    GOOD(hipGraphExecDestroy(exec));
    GOOD(hipGraphDestroy(graph));
}

void memory_of_graphs(struct Setup* s) {
    hipGraph_t graph;
    hipGraphNode_t allocates = NULL, frees = NULL, more = NULL;
    hipGraphExec_t exec;
    hipMemAllocNodeParams params = {0}, read;
    params.poolProps.allocType = hipMemAllocationTypePinned;
    params.poolProps.location.type = hipMemLocationTypeDevice;
    params.bytesize = 1024;
    GOOD(hipGraphCreate(&graph, 0));
    GOOD(hipGraphAddMemAllocNode(&allocates, graph, NULL, 0, &params));
    GOOD(hipGraphMemAllocNodeGetParams(allocates, &read));
    WRITTEN(read);
    GOOD(hipDrvGraphAddMemFreeNode(&more, graph, &allocates, 1, params.dptr));
    // Nothing is freed twice in a graph.
    BAD(hipGraphAddMemFreeNode(&frees, graph, &allocates, 1, params.dptr));
    void* freed = NULL;
    GOOD(hipGraphMemFreeNodeGetParams(more, &freed));
    THAT(freed == params.dptr);
    GOOD(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    unsigned long long flags = 7;
    GOOD(hipGraphExecGetFlags(exec, &flags));
    THAT(flags == 0);
    GOOD(hipGraphLaunch(exec, s->stream));
    GOOD(hipStreamSynchronize(s->stream));
    uint64_t value = 1;
    GOOD(hipDeviceGetGraphMemAttribute(0, hipGraphMemAttrUsedMemCurrent, &value));
    THAT(value == 0);
    GOOD(hipDeviceSetGraphMemAttribute(0, hipGraphMemAttrUsedMemHigh, &value));
    GOOD(hipDeviceGraphMemTrim(0));
    FAILS(hipGraphAddMemAllocNode(NULL, graph, NULL, 0, &params), hipErrorInvalidValue);
    FAILS(hipGraphAddMemAllocNode(&more, NOWHERE, NULL, 0, &params), hipErrorInvalidValue);
    FAILS(hipGraphAddMemAllocNode(&more, graph, NULL, 0, NULL), hipErrorInvalidValue);
    FAILS(hipGraphAddMemFreeNode(&more, graph, NULL, 0, s->device), hipErrorInvalidValue);
    FAILS(hipDrvGraphAddMemFreeNode(&more, graph, NULL, 0, NULL), hipErrorInvalidValue);
    FAILS(hipGraphMemAllocNodeGetParams(frees, &read), hipErrorInvalidValue);
    FAILS(hipGraphMemFreeNodeGetParams(allocates, &freed), hipErrorInvalidValue);
    FAILS(hipGraphExecGetFlags(NOWHERE, &flags), hipErrorInvalidValue);
    FAILS(hipDeviceGetGraphMemAttribute(7, hipGraphMemAttrUsedMemCurrent, &value), hipErrorInvalidDevice);
    FAILS(hipDeviceSetGraphMemAttribute(0, hipGraphMemAttrUsedMemCurrent, &value), hipErrorInvalidValue);
    FAILS(hipDeviceGraphMemTrim(7), hipErrorInvalidDevice);
    GOOD(hipGraphExecDestroy(exec));
    GOOD(hipGraphDestroy(graph));
}

void nodes_of_drivers(struct Setup* s) {
    hipCtx_t context;
    GOOD(hipCtxGetCurrent(&context));
    hipGraph_t graph;
    hipGraphNode_t fills = NULL, copies = NULL, none = NULL;
    hipGraphExec_t exec;
    HIP_MEMSET_NODE_PARAMS fill = {.dst = s->device, .elementSize = 1, .width = 64, .height = 1, .value = 5};
    HIP_MEMCPY3D copy = {.srcMemoryType = hipMemoryTypeDevice, .srcDevice = s->device, .dstMemoryType = hipMemoryTypeDevice,
                         .dstDevice = s->device + 1024, .WidthInBytes = 64, .Height = 1, .Depth = 1, .srcPitch = 64, .dstPitch = 64};
    HIP_MEMCPY3D read;
    GOOD(hipGraphCreate(&graph, 0));
    GOOD(hipDrvGraphAddMemsetNode(&fills, graph, NULL, 0, &fill, context));
    GOOD(hipDrvGraphAddMemcpyNode(&copies, graph, &fills, 1, &copy, context));
    GOOD(hipDrvGraphMemcpyNodeGetParams(copies, &read));
    THAT(read.srcDevice == s->device && read.WidthInBytes == 64);
    GOOD(hipDrvGraphMemcpyNodeSetParams(copies, &copy));
    GOOD(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    GOOD(hipDrvGraphExecMemcpyNodeSetParams(exec, copies, &copy, context));
    GOOD(hipDrvGraphExecMemsetNodeSetParams(exec, fills, &fill, context));
    hipGraphNodeParams any = {.type = hipGraphNodeTypeMemset};
    any.memset = (hipMemsetParams){.dst = s->device, .elementSize = 1, .width = 64, .height = 1, .value = 6};
    GOOD(hipGraphNodeSetParams(fills, &any));
    GOOD(hipGraphExecNodeSetParams(exec, fills, &any));
    GOOD(hipGraphLaunch(exec, s->stream));
    GOOD(hipStreamSynchronize(s->stream));
    FAILS(hipDrvGraphAddMemsetNode(&none, graph, NULL, 0, NULL, context), hipErrorInvalidValue);
    FAILS(hipDrvGraphMemcpyNodeGetParams(fills, &read), hipErrorInvalidValue);
    FAILS(hipDrvGraphMemcpyNodeSetParams(copies, NULL), hipErrorInvalidValue);
    FAILS(hipDrvGraphExecMemcpyNodeSetParams(NOWHERE, copies, &copy, context), hipErrorInvalidValue);
    FAILS(hipDrvGraphExecMemsetNodeSetParams(exec, NOWHERE, &fill, context), hipErrorInvalidValue);
    FAILS(hipGraphNodeSetParams(copies, &any), hipErrorInvalidValue);
    FAILS(hipGraphExecNodeSetParams(exec, fills, NULL), hipErrorInvalidValue);
    GOOD(hipGraphExecDestroy(exec));
    GOOD(hipGraphDestroy(graph));
}

void lists_of_devices(struct Setup* s) {
    hipFunctionLaunchParams launch = {.function = NULL, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 64, .blockDimY = 1,
                                      .blockDimZ = 1, .hStream = s->stream};
    hipLaunchParams runtime = {.func = NULL, .gridDim = {1, 1, 1}, .blockDim = {64, 1, 1}, .stream = s->stream};
    FAILS(hipLaunchCooperativeKernelMultiDevice(NULL, 1, 0), hipErrorInvalidValue);
    FAILS(hipLaunchCooperativeKernelMultiDevice(&runtime, 0, 0), hipErrorInvalidValue);
    FAILS(hipLaunchCooperativeKernelMultiDevice(&runtime, 1, 0), hipErrorInvalidSymbol);
    FAILS(hipExtLaunchMultiKernelMultiDevice(&runtime, 1, 4), hipErrorInvalidValue);
    FAILS(hipExtLaunchMultiKernelMultiDevice(&runtime, 1, 0), hipErrorInvalidSymbol);
    FAILS(hipModuleLaunchCooperativeKernelMultiDevice(&launch, 1, 0), hipErrorInvalidHandle);
    FAILS(hipModuleLaunchCooperativeKernelMultiDevice(&launch, 2, 0), hipErrorInvalidValue);
    hipCtx_t context;
    GOOD(hipCtxGetCurrent(&context));
    GOOD(hipCtxEnablePeerAccess(context, 0));
    GOOD(hipCtxDisablePeerAccess(context));
    int devices[] = {0, 7};
    GOOD(hipSetValidDevices(devices, 1));
    FAILS(hipSetValidDevices(devices + 1, 1), hipErrorInvalidDevice);
    FAILS(hipSetValidDevices(NULL, 1), hipErrorInvalidValue);
}

void libraries(struct Setup* s) {
    void *library = NULL, *kernel = NULL, *kernels[16] = {NULL}, *found = NULL;
    unsigned count = 0, in_module = 0;
    const char* name = NULL;
    GOOD(hipLibraryLoadData(&library, s->kernels, NULL, NULL, 0, NULL, NULL, 0));
    GOOD(hipLibraryGetKernelCount(&count, library));
    GOOD(hipModuleGetFunctionCount(&in_module, s->module));
    THAT(count >= 2 && count <= 16 && in_module == count);
    GOOD(hipLibraryEnumerateKernels(kernels, 16, library));
    GOOD(hipLibraryGetKernel(&kernel, library, "saxpy"));
    int is_there = 0;
    for (unsigned i = 0; i < count; i++) is_there |= kernel == kernels[i];
    THAT(is_there);
    GOOD(hipKernelGetName(&name, kernel));
    THAT(strcmp(name, "saxpy") == 0);
    GOOD(hipKernelGetLibrary(&found, kernel));
    THAT(found == library);
    FAILS(hipLibraryGetKernel(&kernel, library, "nothing"), hipErrorNotFound);
    FAILS(hipLibraryGetKernelCount(&count, NOWHERE), hipErrorInvalidValue);
    FAILS(hipLibraryEnumerateKernels(NULL, 1, library), hipErrorInvalidValue);
    FAILS(hipKernelGetName(&name, NULL), hipErrorInvalidValue);
    FAILS(hipKernelGetLibrary(NULL, kernel), hipErrorInvalidValue);
    FAILS(hipModuleGetFunctionCount(&count, NULL), hipErrorInvalidHandle);
    GOOD(hipLibraryUnload(library));
    GOOD(hipLibraryLoadFromFile(&library, s->kernels_file, NULL, NULL, 0, NULL, NULL, 0));
    GOOD(hipLibraryUnload(library));
    FAILS(hipLibraryUnload(NULL), hipErrorInvalidHandle);
    FAILS(hipLibraryLoadFromFile(&library, "/no/such/file", NULL, NULL, 0, NULL, NULL, 0), hipErrorInvalidValue);

    void *dsts[] = {s->device, s->device + 64}, *srcs[] = {s->host, s->host + 64};
    size_t sizes[] = {32, 32}, failed = 0, none = 0;
    GOOD(hipMemcpyBatchAsync(dsts, srcs, sizes, 2, NULL, NULL, 0, &failed, s->stream));
    THAT(failed == SIZE_MAX);
    FAILS(hipMemcpyBatchAsync(dsts, srcs, sizes, 2, &none, &none, 1, &failed, s->stream), hipErrorNotSupported);
    FAILS(hipMemcpyBatchAsync(dsts, NULL, sizes, 2, NULL, NULL, 0, &failed, s->stream), hipErrorInvalidValue);
    FAILS(hipMemcpy3DBatchAsync(0, &none, &failed, 0, s->stream), hipErrorInvalidValue);
    FAILS(hipMemcpy3DBatchAsync(1, NULL, &failed, 0, s->stream), hipErrorInvalidValue);
    GOOD(hipStreamSynchronize(s->stream));

    int value[16] = {2};
    GOOD(hipStreamSetAttribute(s->stream, 3, value));
    value[0] = 0;
    GOOD(hipStreamGetAttribute(s->stream, 3, value));
    THAT(value[0] == 2);
    GOOD(hipStreamCopyAttributes(s->stream, s->stream));
    FAILS(hipStreamGetAttribute(s->stream, 0, value), hipErrorInvalidValue);
    FAILS(hipStreamSetAttribute(s->stream, 3, NULL), hipErrorInvalidValue);
    FAILS(hipStreamCopyAttributes(NOWHERE, s->stream), hipErrorInvalidHandle);

    // AMD's compiler, which links, is not what is checked here.
    void* code;
    size_t size;
    FAILS(hipLinkCreate(0, NULL, NULL, NULL), hipErrorInvalidValue);
    FAILS(hipLinkAddData(NULL, hipJitInputLLVMBitcode, s->host, 4, "name", 0, NULL, NULL), hipErrorInvalidValue);
    FAILS(hipLinkAddFile(NULL, hipJitInputLLVMBitcode, "/no/such/file", 0, NULL, NULL), hipErrorInvalidValue);
    FAILS(hipLinkComplete(NULL, &code, &size), hipErrorInvalidValue);
    FAILS(hipLinkDestroy(NULL), hipErrorInvalidValue);
}

void graphics(struct Setup* s) {
    unsigned found = 7;
    int devices[1];
    void* resource = NULL;
    void* pointer;
    size_t size;
    hipArray_t array;
    hipArrayMapInfo info = {0};
    FAILS(hipGLGetDevices(&found, devices, 1, 1), hipErrorNoDevice);
    THAT(found == 0);
    FAILS(hipGLGetDevices(NULL, devices, 1, 1), hipErrorInvalidValue);
    FAILS(hipGraphicsGLRegisterBuffer(&resource, 1, 0), hipErrorInvalidValue);
    FAILS(hipGraphicsGLRegisterImage(&resource, 1, 1, 0), hipErrorInvalidValue);
    FAILS(hipGraphicsMapResources(1, NULL, s->stream), hipErrorInvalidValue);
    FAILS(hipGraphicsUnmapResources(1, NULL, s->stream), hipErrorInvalidValue);
    FAILS(hipGraphicsResourceGetMappedPointer(&pointer, &size, NULL), hipErrorInvalidValue);
    FAILS(hipGraphicsSubResourceGetMappedArray(&array, NULL, 0, 0), hipErrorInvalidValue);
    FAILS(hipGraphicsUnregisterResource(NULL), hipErrorInvalidValue);
    FAILS(hipMemMapArrayAsync(NULL, 1, s->stream), hipErrorInvalidValue);
    UNSUPPORTED(hipMemMapArrayAsync(&info, 1, s->stream));
    hipRegisterTracerCallback(NULL);
}
