// Several devices: memory, streams, events, code and settings of each, what connects them, and what a stream of another device means.
// With one device only the refusals can be checked; the line of the result says how many devices there were.
//
// Usage: several_devices [COUNT [chained|apart]]      COUNT: fails unless there are so many devices
// apart: the devices are of different workers: no kernel reaches memory of another one, and host memory exists twice.
// chained: host memory exists twice twice, in a chain of workers, where what one device is still to write holds up who waits for another one.
#include "check.h"

#include <thread>

// The functions about contexts are old, and carried out.
#pragma clang diagnostic ignored "-Wdeprecated-declarations"

__device__ int variable;
__constant__ int constant;

__global__ void store(int* out, int value) { out[threadIdx.x] = value; }
__global__ void add(int* out, int value) { atomicAdd(out, value); }
__global__ void read_variable(int* out) { *out = variable; }
__global__ void read_constant(int* out) { *out = constant; }
__global__ void spin(int* flag) {
    while (__hip_atomic_load(flag, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 0) __builtin_amdgcn_s_sleep(2);
}

namespace {

bool are_apart = false;

constexpr int kCount = 64;

int read(const int* from) {
    int value = -1;
    HIP_CHECK(hipMemcpy(&value, from, sizeof value, hipMemcpyDeviceToHost));
    return value;
}

void enter(int device) {
    HIP_CHECK(hipSetDevice(device));
    int current = -1;
    HIP_CHECK(hipGetDevice(&current));
    EXPECT(current == device);
}

int* allocate(int device) {
    enter(device);
    int* memory = nullptr;
    HIP_CHECK(hipMalloc(&memory, kCount * sizeof(int)));
    HIP_CHECK(hipMemset(memory, 0, kCount * sizeof(int)));
    // Work of the other device does not wait for it.
    HIP_CHECK(hipStreamSynchronize(nullptr));
    return memory;
}

// What is refused whatever there is.
void refusals(int count) {
    for (int wrong : {-1, count, count + 7}) {
        int value = 0;
        hipDeviceProp_t properties;
        EXPECT_ERROR(hipSetDevice(wrong), hipErrorInvalidDevice);
        EXPECT_ERROR(hipGetDeviceProperties(&properties, wrong), hipErrorInvalidDevice);
        EXPECT_ERROR(hipDeviceCanAccessPeer(&value, 0, wrong), hipErrorInvalidDevice);
        EXPECT_ERROR(hipDeviceEnablePeerAccess(wrong, 0), hipErrorInvalidDevice);
    }
    EXPECT_ERROR(hipDeviceEnablePeerAccess(0, 0), hipErrorInvalidDevice);
    int can = -1;
    HIP_CHECK(hipDeviceCanAccessPeer(&can, 0, 0));
    EXPECT(can == 0);
}

void identities() {
    hipDeviceProp_t first, second;
    HIP_CHECK(hipGetDeviceProperties(&first, 0));
    HIP_CHECK(hipGetDeviceProperties(&second, 1));
    // On two machines the numbers of the bus may be equal.
    EXPECT(first.pciDomainID != second.pciDomainID || first.pciBusID != second.pciBusID);
    EXPECT(std::memcmp(&first.uuid, &second.uuid, sizeof first.uuid) != 0);
    char bus[32];
    int found = -1;
    HIP_CHECK(hipDeviceGetPCIBusId(bus, sizeof bus, 1));
    HIP_CHECK(hipDeviceGetByPCIBusId(&found, bus));
    EXPECT(found == 1);
    enter(1);
    int of_thread = -1;
    std::thread([&] { HIP_CHECK(hipGetDevice(&of_thread)); }).join();
    EXPECT(of_thread == 0);
}

void memory_of_each(int* const* memory) {
    for (int device : {0, 1}) {
        hipPointerAttribute_t attributes;
        HIP_CHECK(hipPointerGetAttributes(&attributes, memory[device]));
        EXPECT(attributes.device == device && attributes.type == hipMemoryTypeDevice);
    }
    constexpr size_t kBig = 64 << 20;
    size_t before[2], after[2], total;
    for (int device : {0, 1}) {
        enter(device);
        HIP_CHECK(hipMemGetInfo(&before[device], &total));
    }
    void* big = nullptr;
    HIP_CHECK(hipMalloc(&big, kBig));
    for (int device : {0, 1}) {
        enter(device);
        HIP_CHECK(hipMemGetInfo(&after[device], &total));
    }
    EXPECT(before[0] == after[0] && before[1] - after[1] >= kBig);
    enter(0);
    HIP_CHECK(hipFree(big));
}

void code_of_each(int* const* memory) {
    for (int device : {0, 1}) {
        enter(device);
        int value = 10 + device;
        HIP_CHECK(hipMemcpyToSymbol(HIP_SYMBOL(variable), &value, sizeof value));
        value += 10;
        HIP_CHECK(hipMemcpyToSymbol(HIP_SYMBOL(constant), &value, sizeof value));
    }
    for (int device : {0, 1}) {
        enter(device);
        read_variable<<<1, 1>>>(memory[device]);
        EXPECT(read(memory[device]) == 10 + device);
        read_constant<<<1, 1>>>(memory[device]);
        EXPECT(read(memory[device]) == 20 + device);
    }
}

// A stream means its device, whichever is current.
void streams_elsewhere(int* const* memory, const hipStream_t* stream) {
    enter(0);
    hipDevice_t device = -1;
    HIP_CHECK(hipStreamGetDevice(stream[1], &device));
    EXPECT(device == 1);
#if HIP_VERSION_MAJOR >= 7
    // It refuses launches on streams of another device than the current one.
    enter(1);
#endif
    static_cast<void>(hipGetLastError());
    read_variable<<<1, 1, 0, stream[1]>>>(memory[1]);
    HIP_CHECK(hipGetLastError());
    enter(0);
    HIP_CHECK(hipMemcpyAsync(memory[0], memory[1], sizeof(int), hipMemcpyDeviceToDevice, stream[1]));
    HIP_CHECK(hipStreamSynchronize(stream[1]));
    EXPECT(read(memory[0]) == 11);
    HIP_CHECK(hipMemsetAsync(memory[0], 1, sizeof(int), stream[1]));
    HIP_CHECK(hipStreamSynchronize(stream[1]));
    EXPECT(read(memory[0]) == 0x01010101);

    hipFunction_t function = nullptr;
    HIP_CHECK(hipGetFuncBySymbol(&function, reinterpret_cast<const void*>(store)));
    int* out = memory[0];
    int value = 3;
    void* arguments[] = {&out, &value};
    auto launch = [&](hipStream_t on) { return hipModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, on, arguments, nullptr); };
#if HIP_VERSION_MAJOR < 7
    EXPECT_ERROR(launch(stream[1]), hipErrorInvalidDevice);
    enter(1);
    HIP_CHECK(launch(stream[0]));
    HIP_CHECK(hipStreamSynchronize(stream[0]));
    EXPECT(read(memory[0]) == 3);
#endif
    enter(1);
    EXPECT_ERROR(launch(nullptr), hipErrorInvalidDevice);
}

void peers(int* const* memory) {
    enter(0);
    store<<<1, kCount>>>(memory[0], 77);
    HIP_CHECK(hipMemcpyPeer(memory[1], 1, memory[0], 0, kCount * sizeof(int)));
    EXPECT(read(memory[1] + kCount - 1) == 77);
    store<<<1, kCount>>>(memory[0], 78);
    HIP_CHECK(hipMemcpyPeerAsync(memory[1], 1, memory[0], 0, kCount * sizeof(int), nullptr));
    HIP_CHECK(hipStreamSynchronize(nullptr));
    EXPECT(read(memory[1] + kCount - 1) == 78);
    store<<<1, kCount>>>(memory[0], 79);
    HIP_CHECK(hipMemcpy(memory[1], memory[0], kCount * sizeof(int), hipMemcpyDefault));
    EXPECT(read(memory[1] + kCount - 1) == 79);
    EXPECT_ERROR(hipMemcpyPeer(memory[1], 5, memory[0], 0, 4), hipErrorInvalidDevice);
    EXPECT_ERROR(hipMemcpyPeer(memory[1], 1, memory[0], -1, 4), hipErrorInvalidDevice);
    EXPECT_ERROR(hipMemcpyPeer(nullptr, 1, memory[0], 0, 4), hipErrorInvalidValue);
    HIP_CHECK(hipMemcpyPeer(memory[1], 1, memory[0], 0, 0));

    int can = 0;
    HIP_CHECK(hipDeviceCanAccessPeer(&can, 0, 1));
    EXPECT(can == (are_apart ? 0 : 1));
    EXPECT_ERROR(hipDeviceDisablePeerAccess(1), hipErrorPeerAccessNotEnabled);
    if (are_apart) {
        int value = -1;
        HIP_CHECK(hipDeviceGetP2PAttribute(&value, hipDevP2PAttrAccessSupported, 0, 1));
        EXPECT(value == 0);
        EXPECT_ERROR(hipDeviceEnablePeerAccess(1, 0), hipErrorPeerAccessUnsupported);
        return;
    }
    EXPECT_ERROR(hipDeviceEnablePeerAccess(1, 1), hipErrorInvalidValue);
    HIP_CHECK(hipDeviceEnablePeerAccess(1, 0));
    EXPECT_ERROR(hipDeviceEnablePeerAccess(1, 0), hipErrorPeerAccessAlreadyEnabled);
    store<<<1, 1>>>(memory[1], 90);
    HIP_CHECK(hipDeviceSynchronize());
    EXPECT(read(memory[1]) == 90);
    int* later = allocate(1);
    enter(0);
    store<<<1, 1>>>(later, 91);
    HIP_CHECK(hipDeviceSynchronize());
    EXPECT(read(later) == 91);
    HIP_CHECK(hipFree(later));
    HIP_CHECK(hipDeviceDisablePeerAccess(1));
    EXPECT_ERROR(hipDeviceDisablePeerAccess(1), hipErrorPeerAccessNotEnabled);
}

// While the null stream of device 0 is held up.
void order(int* const* memory, const hipStream_t* stream) {
    int* flag = allocate(0);
    hipStream_t setter, blocking[2];
    HIP_CHECK(hipStreamCreateWithFlags(&setter, hipStreamNonBlocking));
    hipEvent_t event[2];
    for (int device : {0, 1}) {
        enter(device);
        HIP_CHECK(hipStreamCreate(&blocking[device]));
        HIP_CHECK(hipEventCreate(&event[device]));
        HIP_CHECK(hipDeviceSynchronize());
    }
    enter(0);
    spin<<<1, 1>>>(flag);
    store<<<1, 1>>>(memory[0], 1000);
    HIP_CHECK(hipEventRecord(event[0], nullptr));

    // Device 1 has nothing to do with that.
    enter(1);
    store<<<1, 1>>>(memory[1], 5);
    HIP_CHECK(hipStreamSynchronize(nullptr));
    HIP_CHECK(hipDeviceSynchronize());
    EXPECT(read(memory[1]) == 5);
    store<<<1, 1, 0, blocking[1]>>>(memory[1], 6);
    HIP_CHECK(hipStreamSynchronize(blocking[1]));
    EXPECT(read(memory[1]) == 6);
    store<<<1, 1, 0, hipStreamPerThread>>>(memory[1], 8);
    HIP_CHECK(hipStreamSynchronize(hipStreamPerThread));
    EXPECT(read(memory[1]) == 8);
    HIP_CHECK(hipStreamQuery(nullptr));
    EXPECT_ERROR(hipEventQuery(event[0]), hipErrorNotReady);
    enter(0);
    EXPECT_ERROR(hipStreamQuery(nullptr), hipErrorNotReady);
    store<<<1, 1, 0, blocking[0]>>>(memory[0], 1001);
    EXPECT_ERROR(hipStreamQuery(blocking[0]), hipErrorNotReady);

    // But for what waits for the event.
    enter(1);
    HIP_CHECK(hipStreamWaitEvent(stream[1], event[0], 0));
    store<<<1, 1, 0, stream[1]>>>(memory[1], 7);
    EXPECT_ERROR(hipStreamQuery(stream[1]), hipErrorNotReady);
    HIP_CHECK(hipStreamWaitEvent(nullptr, event[0], 0));
    store<<<1, 1>>>(memory[1] + 1, 9);
    EXPECT_ERROR(hipStreamQuery(nullptr), hipErrorNotReady);
    HIP_CHECK(hipStreamQuery(blocking[1]));
    const int one = 1;
    HIP_CHECK(hipMemcpyAsync(flag, &one, sizeof one, hipMemcpyHostToDevice, setter));
    HIP_CHECK(hipStreamSynchronize(stream[1]));
    EXPECT(read(memory[1]) == 7);
    HIP_CHECK(hipDeviceSynchronize());
    EXPECT(read(memory[1] + 1) == 9);
    enter(0);
    HIP_CHECK(hipDeviceSynchronize());
    EXPECT(read(memory[0]) == 1001);

    // An event is recorded on its device.
    EXPECT_ERROR(hipEventRecord(event[1], stream[0]), hipErrorInvalidHandle);
    EXPECT_ERROR(hipEventRecord(event[1], nullptr), hipErrorInvalidHandle);
    EXPECT_ERROR(hipEventRecord(event[0], stream[1]), hipErrorInvalidHandle);
    HIP_CHECK(hipEventRecord(event[1], stream[1]));
    HIP_CHECK(hipEventRecord(event[0], stream[0]));
    for (int device : {0, 1}) HIP_CHECK(hipEventSynchronize(event[device]));
    float ms;
    EXPECT_ERROR(hipEventElapsedTime(&ms, event[0], event[1]), hipErrorInvalidHandle);
    for (int device : {0, 1}) {
        HIP_CHECK(hipEventDestroy(event[device]));
        HIP_CHECK(hipStreamDestroy(blocking[device]));
    }
    HIP_CHECK(hipStreamDestroy(setter));
    HIP_CHECK(hipFree(flag));
}

// Memory that all devices reach, written by each in turn.
void host_memory() {
    int *pinned = nullptr, *managed = nullptr;
    HIP_CHECK(hipHostMalloc(&pinned, 64, 0));
    HIP_CHECK(hipMallocManaged(&managed, 64));
    int* registered = static_cast<int*>(std::aligned_alloc(4096, 4096));
    HIP_CHECK(hipHostRegister(registered, 4096, hipHostRegisterMapped));
    *pinned = *managed = *registered = 0;
    for (int round = 1; round <= 6; round++) {
        enter(round % 2);
        int* there = nullptr;
        HIP_CHECK(hipHostGetDevicePointer(reinterpret_cast<void**>(&there), registered, 0));
        add<<<1, 1>>>(pinned, 1);
        add<<<1, 1>>>(managed, 1);
        add<<<1, 1>>>(there, 1);
        HIP_CHECK(hipDeviceSynchronize());
        EXPECT(*pinned == 2 * round - 1 && *managed == 2 * round - 1 && *registered == 2 * round - 1);
        // The next device sees what the program writes.
        ++*pinned;
        ++*managed;
        ++*registered;
    }
    HIP_CHECK(hipHostUnregister(registered));
    std::free(registered);
    HIP_CHECK(hipFree(managed));
    HIP_CHECK(hipHostFree(pinned));
}

// A wait for one device tells nothing of what another one is still to write.
void host_memory_apart() {
    int *flag = allocate(0), *pinned = nullptr;
    hipStream_t setter;
    HIP_CHECK(hipStreamCreateWithFlags(&setter, hipStreamNonBlocking));
    HIP_CHECK(hipHostMalloc(&pinned, 2 * 4096, 0));
    int* of[2] = {pinned, pinned + 1024};
    *of[0] = *of[1] = 0;
    for (int device : {0, 1}) {
        enter(device);
        add<<<1, 1>>>(of[device], 1);
        HIP_CHECK(hipDeviceSynchronize());
        EXPECT(*of[device] == 1);
    }
    enter(0);
    spin<<<1, 1>>>(flag);
    add<<<1, 1>>>(of[0], 1);
    enter(1);
    for (int round = 2; round <= 4; round++) {
        add<<<1, 1>>>(of[1], 1);
        if (round % 2 == 0) HIP_CHECK(hipDeviceSynchronize());
        else HIP_CHECK(hipStreamSynchronize(nullptr));
        EXPECT(*of[1] == round && *of[0] == 1);
    }
    const int one = 1;
    HIP_CHECK(hipMemcpyAsync(flag, &one, sizeof one, hipMemcpyHostToDevice, setter));
    enter(0);
    HIP_CHECK(hipDeviceSynchronize());
    EXPECT(*of[0] == 2 && *of[1] == 4);
    HIP_CHECK(hipHostFree(pinned));
    HIP_CHECK(hipStreamDestroy(setter));
    HIP_CHECK(hipFree(flag));
}

void settings() {
    unsigned flags = 9;
    size_t bytes[2];
    enter(0);
    HIP_CHECK(hipSetDeviceFlags(hipDeviceScheduleYield));
    HIP_CHECK(hipDeviceSetLimit(hipLimitStackSize, 4096));
    for (int device : {0, 1}) {
        enter(device);
        HIP_CHECK(hipGetDeviceFlags(&flags));
        EXPECT((flags == hipDeviceScheduleYield) == (device == 0));
        HIP_CHECK(hipDeviceGetLimit(&bytes[device], hipLimitStackSize));
    }
    EXPECT(bytes[0] == 4096 && bytes[1] == 1024);
    enter(0);
    hipCtx_t context = nullptr, other = nullptr, popped = nullptr;
    EXPECT_ERROR(hipCtxPopCurrent(&popped), hipErrorInvalidContext);
    HIP_CHECK(hipDevicePrimaryCtxRetain(&context, 0));
    HIP_CHECK(hipDevicePrimaryCtxRetain(&other, 1));
    EXPECT(context != other);
    int device = -1;
    HIP_CHECK(hipCtxPushCurrent(other));
    HIP_CHECK(hipGetDevice(&device));
    EXPECT(device == 1);
    HIP_CHECK(hipCtxPopCurrent(&popped));
    EXPECT(popped == other);
    HIP_CHECK(hipCtxSetCurrent(context));
    HIP_CHECK(hipGetDevice(&device));
    EXPECT(device == 0);
    HIP_CHECK(hipCtxPopCurrent(&popped));
}

void pools(const hipStream_t* stream) {
    enter(0);
    hipMemPool_t pool[2], current;
    for (int device : {0, 1}) HIP_CHECK(hipDeviceGetDefaultMemPool(&pool[device], device));
    EXPECT(pool[0] != pool[1]);
    HIP_CHECK(hipDeviceGetMemPool(&current, 1));
    EXPECT(current == pool[1]);
    EXPECT_ERROR(hipDeviceSetMemPool(0, pool[1]), hipErrorInvalidDevice);
    // Memory of the stream's device, again and again.
    for (int round = 0; round < 4; round++) {
        int* memory = nullptr;
        enter(0);
        HIP_CHECK(hipMallocAsync(reinterpret_cast<void**>(&memory), 256, stream[1]));
        hipPointerAttribute_t attributes;
        HIP_CHECK(hipPointerGetAttributes(&attributes, memory));
        EXPECT(attributes.device == 1);
        enter(1);
        store<<<1, kCount, 0, stream[1]>>>(memory, round);
        HIP_CHECK(hipStreamSynchronize(stream[1]));
        EXPECT(read(memory) == round);
        HIP_CHECK(hipFreeAsync(memory, stream[1]));
        HIP_CHECK(hipMallocAsync(reinterpret_cast<void**>(&memory), 256, nullptr));
        store<<<1, kCount>>>(memory, round);
        EXPECT(read(memory) == round);
        HIP_CHECK(hipFreeAsync(memory, nullptr));
    }
}

void launches_on_both(int* const* memory, const hipStream_t* stream) {
    hipLaunchParams list[2];
    void* arguments[2][1];
    int* out[2] = {memory[0], memory[1]};
    for (int device : {0, 1}) {
        arguments[device][0] = &out[device];
        list[device] = {reinterpret_cast<void*>(read_variable), dim3(1), dim3(1), arguments[device], 0, stream[device]};
    }
    enter(0);
    HIP_CHECK(hipExtLaunchMultiKernelMultiDevice(list, 2, 0));
    for (int device : {0, 1}) HIP_CHECK(hipStreamSynchronize(stream[device]));
    EXPECT(read(memory[0]) == 10 && read(memory[1]) == 11);
    list[1].stream = stream[0];
    EXPECT_ERROR(hipExtLaunchMultiKernelMultiDevice(list, 2, 0), hipErrorInvalidDevice);

    hipGraph_t graph;
    hipGraphExec_t instance;
    enter(1);
    HIP_CHECK(hipStreamBeginCapture(stream[1], hipStreamCaptureModeRelaxed));
    read_variable<<<1, 1, 0, stream[1]>>>(memory[1]);
    HIP_CHECK(hipMemcpyAsync(memory[0], memory[1], sizeof(int), hipMemcpyDeviceToDevice, stream[1]));
    HIP_CHECK(hipStreamEndCapture(stream[1], &graph));
    HIP_CHECK(hipGraphInstantiate(&instance, graph, nullptr, nullptr, 0));
    for (int round = 0; round < 3; round++) {
        HIP_CHECK(hipMemset(memory[0], 0, sizeof(int)));
        HIP_CHECK(hipDeviceSynchronize());
        HIP_CHECK(hipGraphLaunch(instance, stream[1]));
        HIP_CHECK(hipStreamSynchronize(stream[1]));
        EXPECT(read(memory[0]) == 11);
    }
    HIP_CHECK(hipGraphExecDestroy(instance));
    HIP_CHECK(hipGraphDestroy(graph));
}

// What is reset is one device.
void reset(int* const* memory, const hipStream_t* stream) {
    enter(0);
    store<<<1, 1>>>(memory[0], 123);
    HIP_CHECK(hipDeviceSynchronize());
    enter(1);
    HIP_CHECK(hipDeviceReset());
    int* fresh = allocate(1);
    store<<<1, 1>>>(fresh, 6);
    HIP_CHECK(hipDeviceSynchronize());
    EXPECT(read(fresh) == 6);
#if HIP_VERSION_MAJOR < 7
    // 7.2.4 ends the program.
    int value = 0;
    EXPECT_ERROR(hipMemcpy(&value, memory[1], sizeof value, hipMemcpyDeviceToHost), hipErrorInvalidValue);
    EXPECT_ERROR(hipStreamQuery(stream[1]), hipErrorContextIsDestroyed);
#endif
    HIP_CHECK(hipFree(fresh));
    enter(0);
    EXPECT(read(memory[0]) == 123);
    store<<<1, 1, 0, stream[0]>>>(memory[0], 124);
    HIP_CHECK(hipStreamSynchronize(stream[0]));
    EXPECT(read(memory[0]) == 124);
}

} // namespace

int main(int argc, char** argv) {
    check::begin("several_devices");
    int count = 0;
    HIP_CHECK(hipGetDeviceCount(&count));
    if (argc > 1) EXPECT(count == std::atoi(argv[1]));
    are_apart = argc > 2 && std::strcmp(argv[2], "apart") == 0;
    refusals(count);
    if (count > 1) {
        identities();
        int* memory[2] = {allocate(0), allocate(1)};
        hipStream_t stream[2];
        for (int device : {0, 1}) {
            enter(device);
            HIP_CHECK(hipStreamCreateWithFlags(&stream[device], hipStreamNonBlocking));
        }
        memory_of_each(memory);
        code_of_each(memory);
        streams_elsewhere(memory, stream);
        peers(memory);
        order(memory, stream);
        host_memory();
        if (argc < 3) host_memory_apart();
        settings();
        pools(stream);
        launches_on_both(memory, stream);
        reset(memory, stream);
    }
    return check::finish();
}
