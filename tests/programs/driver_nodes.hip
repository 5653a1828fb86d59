// Functions of the driver API about graph nodes, parameters of nodes of any type, and launches on a list of devices.
#include "runtime.h"

#pragma clang diagnostic ignored "-Wdeprecated-declarations"

__global__ void count(int* at) { atomicAdd(at, 1); }

// Parameters of a fill: the releases have different structures.
#if HIP_VERSION_MAJOR >= 7
using FillParams = hipMemsetParams;
#else
using FillParams = HIP_MEMSET_NODE_PARAMS;
#endif

static hipCtx_t context = nullptr;
static hipStream_t stream = nullptr;

static bool is_hipr() { return check::amds_release() == 0; }

static FillParams fill(void* at, unsigned value, unsigned element, size_t width, size_t height = 1, size_t pitch = 0) {
    FillParams params{};
    params.dst = at;
    params.value = value;
    params.elementSize = element;
    params.width = width;
    params.height = height;
    params.pitch = pitch;
    return params;
}

static HIP_MEMCPY3D copy(void* to, void* from, size_t bytes) {
    HIP_MEMCPY3D params{};
    params.srcMemoryType = params.dstMemoryType = hipMemoryTypeDevice;
    params.srcDevice = from;
    params.dstDevice = to;
    params.WidthInBytes = params.srcPitch = params.dstPitch = bytes;
    params.Height = params.Depth = params.srcHeight = params.dstHeight = 1;
    return params;
}

static void nodes() {
    DeviceArray<uint32_t> one(32), two(32);
    one.fill_bytes(0);
    two.fill_bytes(0);
    HIP_CHECK(hipDeviceSynchronize());
    hipGraph_t graph = nullptr;
    hipGraphNode_t filled = nullptr, copied = nullptr, other = nullptr;
    HIP_CHECK(hipGraphCreate(&graph, 0));
    FillParams fills = fill(one.get(), 0x01020304, 4, 16);
    HIP_CHECK(hipDrvGraphAddMemsetNode(&filled, graph, nullptr, 0, &fills, context));
    EXPECT_ERROR(hipDrvGraphAddMemsetNode(nullptr, graph, nullptr, 0, &fills, context), hipErrorInvalidValue);
    EXPECT_ERROR(hipDrvGraphAddMemsetNode(&other, nullptr, nullptr, 0, &fills, context), hipErrorInvalidValue);
    EXPECT_ERROR(hipDrvGraphAddMemsetNode(&other, graph, nullptr, 0, nullptr, context), hipErrorInvalidValue);
    EXPECT_ERROR(hipDrvGraphAddMemsetNode(&other, graph, nullptr, 1, &fills, context), hipErrorInvalidValue);
    for (const FillParams& wrong : {fill(nullptr, 1, 1, 4), fill(one.get(), 1, 3, 4), fill(one.get(), 1, 1, 0), fill(one.get(), 1, 1, 4, 0), fill(one.get(), 1, 1, 4, 2, 2)})
        EXPECT_ERROR(hipDrvGraphAddMemsetNode(&other, graph, nullptr, 0, &wrong, context), hipErrorInvalidValue);
    HIP_MEMCPY3D copies = copy(two.get(), one.get(), 64), read{};
    HIP_CHECK(hipDrvGraphAddMemcpyNode(&copied, graph, &filled, 1, &copies, context));
    HIP_CHECK(hipDrvGraphMemcpyNodeGetParams(copied, &read));
    EXPECT(read.srcDevice == one.get() && read.dstDevice == two.get() && read.srcMemoryType == hipMemoryTypeDevice && read.dstMemoryType == hipMemoryTypeDevice);
    EXPECT(read.WidthInBytes == 64 && read.Height == 1 && read.Depth == 1 && read.srcPitch == 64 && read.dstPitch == 64);
    EXPECT_ERROR(hipDrvGraphMemcpyNodeGetParams(nullptr, &read), hipErrorInvalidValue);
    EXPECT_ERROR(hipDrvGraphMemcpyNodeGetParams(copied, nullptr), hipErrorInvalidValue);
    hipGraphExec_t exec = nullptr;
    HIP_CHECK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    auto run = [&](uint32_t first, uint32_t last) {
        HIP_CHECK(hipGraphLaunch(exec, stream));
        HIP_CHECK(hipStreamSynchronize(stream));
        EXPECT(two.download()[0] == first && two.download()[15] == last);
    };
    run(0x01020304, 0x01020304);
    fills = fill(one.get(), 7, 4, 16);
    HIP_CHECK(hipDrvGraphExecMemsetNodeSetParams(exec, filled, &fills, context));
    run(7, 7);
    EXPECT_ERROR(hipDrvGraphExecMemsetNodeSetParams(exec, filled, nullptr, context), hipErrorInvalidValue);
    EXPECT_ERROR(hipDrvGraphExecMemsetNodeSetParams(exec, nullptr, &fills, context), hipErrorInvalidValue);
    EXPECT_ERROR(hipDrvGraphExecMemsetNodeSetParams(nullptr, filled, &fills, context), hipErrorInvalidValue);
    copies = copy(two.get(), one.get() + 1, 60);
    HIP_CHECK(hipDrvGraphMemcpyNodeSetParams(copied, &copies));
    HIP_CHECK(hipDrvGraphMemcpyNodeGetParams(copied, &read));
    EXPECT(read.WidthInBytes == 60 && read.srcDevice == one.get() + 1);
    EXPECT_ERROR(hipDrvGraphMemcpyNodeSetParams(copied, nullptr), hipErrorInvalidValue);
    EXPECT_ERROR(hipDrvGraphMemcpyNodeSetParams(nullptr, &copies), hipErrorInvalidValue);
    copies.srcPitch = 1;
    EXPECT_ERROR(hipDrvGraphMemcpyNodeSetParams(copied, &copies), hipErrorInvalidValue);
    two.fill_bytes(0);
    HIP_CHECK(hipDeviceSynchronize());
    copies = copy(two.get(), one.get(), 32);
    HIP_CHECK(hipDrvGraphExecMemcpyNodeSetParams(exec, copied, &copies, context));
    run(7, 0);
    HIP_CHECK(hipDrvGraphExecMemcpyNodeSetParams(exec, copied, &copies, nullptr));
    if (is_hipr()) { // AMD's runtime ends with a fault
        EXPECT_ERROR(hipDrvGraphExecMemcpyNodeSetParams(exec, copied, nullptr, context), hipErrorInvalidValue);
        EXPECT_ERROR(hipDrvGraphExecMemcpyNodeSetParams(exec, nullptr, &copies, context), hipErrorInvalidValue);
        EXPECT_ERROR(hipDrvGraphExecMemcpyNodeSetParams(nullptr, copied, &copies, context), hipErrorInvalidValue);
    }
    alignas(16) char bytes[sizeof(hipGraphNodeParams)] = {};
    hipGraphNodeParams& any = *reinterpret_cast<hipGraphNodeParams*>(bytes);
    any.type = hipGraphNodeTypeMemset;
    any.memset.dst = one.get();
    any.memset.elementSize = 4;
    any.memset.value = 9;
    any.memset.width = 16;
    any.memset.height = 1;
    HIP_CHECK(hipGraphExecNodeSetParams(exec, filled, &any));
    run(9, 0);
    HIP_CHECK(hipGraphNodeSetParams(filled, &any));
    hipMemsetParams got{};
    HIP_CHECK(hipGraphMemsetNodeGetParams(filled, &got));
    EXPECT(got.value == 9);
    EXPECT_ERROR(hipGraphNodeSetParams(nullptr, &any), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphNodeSetParams(filled, nullptr), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphExecNodeSetParams(exec, filled, nullptr), hipErrorInvalidValue);
    if (is_hipr()) { // AMD's runtime takes a node for one of the other type
        EXPECT_ERROR(hipGraphNodeSetParams(copied, &any), hipErrorInvalidValue);
        EXPECT_ERROR(hipGraphExecNodeSetParams(exec, copied, &any), hipErrorInvalidValue);
        EXPECT_ERROR(hipDrvGraphMemcpyNodeGetParams(filled, &read), hipErrorInvalidValue);
        EXPECT_ERROR(hipDrvGraphExecMemsetNodeSetParams(exec, copied, &fills, context), hipErrorInvalidValue);
    }
    HIP_CHECK(hipGraphExecDestroy(exec));
    HIP_CHECK(hipGraphDestroy(graph));
}

static void launches() {
    int devices = 0;
    HIP_CHECK(hipGetDeviceCount(&devices));
    DeviceArray<int> counted(1);
    counted.fill_bytes(0);
    HIP_CHECK(hipDeviceSynchronize());
    int* at = counted.get();
    void* arguments[] = {&at};
    hipLaunchParams launch{};
    launch.func = reinterpret_cast<void*>(count);
    launch.gridDim = dim3(2);
    launch.blockDim = dim3(64);
    launch.args = arguments;
    launch.stream = stream;
    HIP_CHECK(hipLaunchCooperativeKernelMultiDevice(&launch, 1, 0));
    HIP_CHECK(hipLaunchCooperativeKernelMultiDevice(&launch, 1, hipCooperativeLaunchMultiDeviceNoPreSync | hipCooperativeLaunchMultiDeviceNoPostSync));
    HIP_CHECK(hipExtLaunchMultiKernelMultiDevice(&launch, 1, 0));
    hipFunction_t function = nullptr;
    HIP_CHECK(hipGetFuncBySymbol(&function, reinterpret_cast<const void*>(count)));
    hipFunctionLaunchParams called{};
    called.function = function;
    called.gridDimX = 2;
    called.gridDimY = called.gridDimZ = called.blockDimY = called.blockDimZ = 1;
    called.blockDimX = 64;
    called.hStream = stream;
    called.kernelParams = arguments;
    HIP_CHECK(hipModuleLaunchCooperativeKernelMultiDevice(&called, 1, 0));
    HIP_CHECK(hipStreamSynchronize(stream));
    EXPECT(counted.download()[0] == 4 * 128);
    for (int wrong : {0, -1, devices + 1}) {
        std::vector<hipLaunchParams> list(devices + 1, launch);
        hipError_t error = hipLaunchCooperativeKernelMultiDevice(list.data(), wrong, 0);
        EXPECT(error == hipErrorInvalidValue || (wrong != 0 && check::amds_release() == 7 && error == hipErrorInvalidDevice));
        if (wrong > 0) EXPECT(hipExtLaunchMultiKernelMultiDevice(list.data(), wrong, 0) != hipSuccess);
    }
    EXPECT_ERROR(hipLaunchCooperativeKernelMultiDevice(nullptr, 1, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipExtLaunchMultiKernelMultiDevice(nullptr, 1, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipModuleLaunchCooperativeKernelMultiDevice(nullptr, 1, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipModuleLaunchCooperativeKernelMultiDevice(&called, 0, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipLaunchCooperativeKernelMultiDevice(&launch, 1, 4), hipErrorInvalidValue);
    EXPECT_ERROR(hipExtLaunchMultiKernelMultiDevice(&launch, 1, 4), hipErrorInvalidValue);
    EXPECT_ERROR(hipModuleLaunchCooperativeKernelMultiDevice(&called, 1, 4), hipErrorInvalidValue);
    launch.stream = called.hStream = nullptr;
    EXPECT_ERROR(hipLaunchCooperativeKernelMultiDevice(&launch, 1, 0), hipErrorInvalidHandle);
    EXPECT_ERROR(hipExtLaunchMultiKernelMultiDevice(&launch, 1, 0), hipErrorInvalidHandle);
    EXPECT_ERROR(hipModuleLaunchCooperativeKernelMultiDevice(&called, 1, 0), hipErrorInvalidHandle);
    launch.stream = called.hStream = stream;
    launch.func = nullptr;
    called.function = nullptr;
    EXPECT_ERROR(hipLaunchCooperativeKernelMultiDevice(&launch, 1, 0), hipErrorInvalidSymbol);
    EXPECT_ERROR(hipModuleLaunchCooperativeKernelMultiDevice(&called, 1, 0), hipErrorInvalidHandle);
    launch.func = reinterpret_cast<void*>(count);
    called.function = function;
    launch.gridDim.x = called.gridDimX = 1 << 20;
    // Over a worker with a GPU it is the worker that tells.
    auto is_too_large = [](hipError_t error) {
        return (error == hipSuccess ? hipDeviceSynchronize() : error) == hipErrorCooperativeLaunchTooLarge;
    };
    EXPECT(is_too_large(hipLaunchCooperativeKernelMultiDevice(&launch, 1, 0)));
    EXPECT(is_too_large(hipModuleLaunchCooperativeKernelMultiDevice(&called, 1, 0)));
    // Contexts have no peers to speak of.
    HIP_CHECK(hipCtxEnablePeerAccess(context, 0));
    HIP_CHECK(hipCtxDisablePeerAccess(context));
    int can = 0;
    HIP_CHECK(hipDeviceGetAttribute(&can, hipDeviceAttributeCooperativeMultiDeviceLaunch, 0));
    EXPECT(can == 1 || devices > 1);
    (void)hipGetLastError();
}

int main() {
    check::begin("driver_nodes");
    HIP_CHECK(hipStreamCreate(&stream));
    HIP_CHECK(hipCtxGetCurrent(&context));
    if (context == nullptr) HIP_CHECK(hipDevicePrimaryCtxRetain(&context, 0));
    nodes();
    launches();
    HIP_CHECK(hipStreamDestroy(stream));
    return check::finish();
}
