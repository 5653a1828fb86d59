// Streams wait for values in memory and write them: in device memory, pinned memory and signals, by the program, by kernels and by other streams.
#include <chrono>
#include <thread>

#include "runtime.h"

#pragma clang diagnostic ignored "-Wdeprecated-declarations"

__global__ void put(uint32_t* at, uint32_t value) { *at = value; }

static bool is_hipr() { return check::amds_release() == 0; }
static void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

enum Kind { kDevice, kPinned, kSignal, kKinds };

// Eight bytes of a kind of memory.
struct Value {
    Kind kind;
    uint64_t* at = nullptr;

    explicit Value(Kind kind) : kind(kind) {
        void** out = reinterpret_cast<void**>(&at);
        if (kind == kDevice) HIP_CHECK(hipMalloc(out, 8));
        if (kind == kPinned) HIP_CHECK(hipHostMalloc(out, 8, 0));
        if (kind == kSignal) HIP_CHECK(hipExtMallocWithFlags(out, 8, hipMallocSignalMemory));
        set(0);
    }
    Value(const Value&) = delete;
    ~Value() {
        if (kind == kPinned) HIP_CHECK(hipHostFree(at));
        else HIP_CHECK(hipFree(at));
    }
    void set(uint64_t value) {
        if (kind == kDevice) HIP_CHECK(hipMemcpy(at, &value, 8, hipMemcpyHostToDevice));
        else *static_cast<volatile uint64_t*>(at) = value;
    }
    uint64_t get() const {
        uint64_t value = 0;
        HIP_CHECK(hipMemcpy(&value, at, 8, hipMemcpyDefault));
        return value;
    }
};

struct Stream {
    hipStream_t handle = nullptr;
    explicit Stream(unsigned flags = hipStreamNonBlocking) { HIP_CHECK(hipStreamCreateWithFlags(&handle, flags)); }
    Stream(const Stream&) = delete;
    ~Stream() { HIP_CHECK(hipStreamDestroy(handle)); }
    operator hipStream_t() const { return handle; }
};

static bool holds(unsigned flags, uint64_t found, uint64_t value, uint64_t mask) {
    if (flags == hipStreamWaitValueGte) return (found & mask) >= value;
    if (flags == hipStreamWaitValueEq) return (found & mask) == value;
    if (flags == hipStreamWaitValueAnd) return (found & mask & value) != 0;
    return (~((found & mask) | (value & mask)) & mask) != 0;
}

// Each condition with values that do and do not meet it: a stream waits until a value is there that does.
static void conditions(Kind kind) {
    struct Case { uint64_t value, mask, meets, fails; };
    const uint64_t all = ~uint64_t{0}, high = uint64_t{1} << 40;
    const Case cases[4][3] = {
        {{5, all, 5, 4}, {high, all, high + 7, high - 1}, {3, 0xff, 0x703, 0x702}},
        {{7, all, 7, 8}, {high + 1, all, high + 1, 1}, {2, 0xf, 0x32, 0x33}},
        {{4, all, 6, 3}, {high, all, high, high - 1}, {0xf0, 0x30, 0x10, 0xcf}},
        {{0xf0, all, 0x0f, all}, {all - 2, all, 0, all}, {1, 3, 0, 2}},
    };
    Value value(kind);
    DeviceArray<uint32_t> behind(1);
    for (unsigned flags = 0; flags < 4; flags++)
        for (const Case& c : cases[flags])
            for (bool wide : {true, false}) {
                if (!wide && (c.value | c.meets) >> 32 && flags != hipStreamWaitValueNor) continue;
                uint64_t bits = wide ? ~uint64_t{0} : 0xffffffff;
                if (!holds(flags, c.meets & bits, c.value & bits, c.mask & bits) || holds(flags, c.fails & bits, c.value & bits, c.mask & bits)) continue;
                Stream stream;
                value.set(c.fails);
                behind.fill_bytes(0);
                HIP_CHECK(hipDeviceSynchronize());
                if (wide) HIP_CHECK(hipStreamWaitValue64(stream, value.at, c.value, flags, c.mask));
                else HIP_CHECK(hipStreamWaitValue32(stream, value.at, static_cast<uint32_t>(c.value), flags, static_cast<uint32_t>(c.mask)));
                put<<<1, 1, 0, stream>>>(behind.get(), 9);
                pause();
                EXPECT(hipStreamQuery(stream) == hipErrorNotReady);
                Stream other;
                if (kind == kDevice) HIP_CHECK(hipStreamWriteValue64(other, value.at, c.meets, 0));
                else value.set(c.meets);
                HIP_CHECK(hipStreamSynchronize(stream));
                EXPECT(behind.download()[0] == 9);
            }
}

// Who writes the value is a copy, a fill, a kernel, or a write of another stream; the work behind the wait sees what was written before.
static void writers(Kind kind) {
    for (int writer = 0; writer < 5; writer++) {
        Value value(kind);
        DeviceArray<uint32_t> data(2);
        data.fill_bytes(0);
        // hipr sets and copies pinned memory that no kernel has used ahead of the stream's work: docs/differences.md.
        put<<<1, 1>>>(reinterpret_cast<uint32_t*>(value.at), 0);
        HIP_CHECK(hipDeviceSynchronize());
        Stream waits, writes;
        HIP_CHECK(hipStreamWaitValue32(waits, value.at, 0x01010101, hipStreamWaitValueEq, 0xffffffff));
        HIP_CHECK(hipMemcpyAsync(data.get() + 1, data.get(), 4, hipMemcpyDeviceToDevice, waits));
        pause();
        EXPECT(hipStreamQuery(waits) == hipErrorNotReady);
        put<<<1, 1, 0, writes>>>(data.get(), 77);
        uint32_t* at = reinterpret_cast<uint32_t*>(value.at);
        static const uint32_t source = 0x01010101;
        if (writer == 0) HIP_CHECK(hipStreamWriteValue32(writes, at, 0x01010101, 0));
        if (writer == 1) put<<<1, 1, 0, writes>>>(at, 0x01010101);
        if (writer == 2) HIP_CHECK(hipMemsetAsync(at, 1, 4, writes));
        if (writer == 3) HIP_CHECK(hipMemcpyAsync(at, &source, 4, hipMemcpyDefault, writes));
        if (writer == 4) HIP_CHECK(hipStreamWriteValue64(writes, at, 0x0101010101010101, 0));
        HIP_CHECK(hipStreamSynchronize(waits));
        EXPECT(data.download()[1] == 77);
        EXPECT(static_cast<uint32_t>(value.get()) == 0x01010101);
    }
}

// Two streams pass a number to and fro.
static void ping_pong(Kind kind) {
    const uint32_t rounds = 20;
    Value ping(kind), pong(kind);
    DeviceArray<uint32_t> last(1);
    Stream one, two;
    for (uint32_t round = 1; round <= rounds; round++) {
        HIP_CHECK(hipStreamWriteValue32(one, ping.at, round, 0));
        HIP_CHECK(hipStreamWaitValue32(two, ping.at, round, hipStreamWaitValueGte, 0xffffffff));
        put<<<1, 1, 0, two>>>(last.get(), round);
        HIP_CHECK(hipStreamWriteValue32(two, pong.at, round, 0));
        HIP_CHECK(hipStreamWaitValue32(one, pong.at, round, hipStreamWaitValueGte, 0xffffffff));
    }
    HIP_CHECK(hipStreamSynchronize(one));
    EXPECT(last.download()[0] == rounds && pong.get() == rounds);
}

// Events and other streams come behind what waits.
static void ordered() {
    Value value(kPinned);
    DeviceArray<uint32_t> data(1);
    data.fill_bytes(0);
    Stream waits, follows;
    hipEvent_t event = nullptr;
    HIP_CHECK(hipEventCreate(&event));
    HIP_CHECK(hipStreamWaitValue32(waits, value.at, 1, hipStreamWaitValueEq, 0xffffffff));
    put<<<1, 1, 0, waits>>>(data.get(), 5);
    HIP_CHECK(hipEventRecord(event, waits));
    HIP_CHECK(hipStreamWaitEvent(follows, event, 0));
    uint32_t seen = 0;
    pause();
    EXPECT(hipEventQuery(event) == hipErrorNotReady);
    value.set(1);
    HIP_CHECK(hipMemcpyAsync(&seen, data.get(), 4, hipMemcpyDeviceToHost, follows));
    HIP_CHECK(hipStreamSynchronize(follows));
    EXPECT(seen == 5);
    HIP_CHECK(hipEventDestroy(event));
}

static void signals() {
    Value value(kSignal);
    hipPointerAttribute_t attributes{};
    HIP_CHECK(hipPointerGetAttributes(&attributes, value.at));
    EXPECT(attributes.type == hipMemoryTypeHost && attributes.hostPointer == value.at && attributes.devicePointer == value.at);
    EXPECT(attributes.allocationFlags == hipMallocSignalMemory && !attributes.isManaged);
    void* other = nullptr;
    EXPECT_ERROR(hipExtMallocWithFlags(&other, 4, hipMallocSignalMemory), hipErrorInvalidValue);
    EXPECT_ERROR(hipExtMallocWithFlags(&other, 16, hipMallocSignalMemory), hipErrorInvalidValue);
    HIP_CHECK(hipExtMallocWithFlags(&other, 8, hipMallocSignalMemory));
    HIP_CHECK(hipHostFree(other));
}

static void errors() {
    Stream stream;
    DeviceArray<uint64_t> memory(8);
    memory.fill_bytes(0);
    HIP_CHECK(hipDeviceSynchronize());
    uint64_t local = 0;
    hipStream_t nobodys = reinterpret_cast<hipStream_t>(0x1234567);
    EXPECT_ERROR(hipStreamWaitValue32(stream, nullptr, 0, 0, 1), hipErrorInvalidValue);
    EXPECT_ERROR(hipStreamWaitValue64(stream, nullptr, 0, 0, 1), hipErrorInvalidValue);
    EXPECT_ERROR(hipStreamWriteValue32(stream, nullptr, 0, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipStreamWriteValue64(stream, nullptr, 0, 0), hipErrorInvalidValue);
    for (unsigned flags = 4; flags < 7; flags++) {
        EXPECT_ERROR(hipStreamWaitValue32(stream, memory.get(), 0, flags, 1), hipErrorInvalidValue);
        EXPECT_ERROR(hipStreamWaitValue64(stream, memory.get(), 0, flags, 1), hipErrorInvalidValue);
    }
    EXPECT_ERROR(hipStreamWaitValue32(stream, &local, 0, 0, 1), hipErrorInvalidValue);
    EXPECT_ERROR(hipStreamWriteValue32(stream, &local, 1, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipStreamWaitValue32(nobodys, memory.get(), 0, 0, 1), hipErrorContextIsDestroyed);
    EXPECT_ERROR(hipStreamWriteValue32(nobodys, memory.get(), 0, 0), hipErrorContextIsDestroyed);
    // Any address will do, and any flags of a write.
    char* bytes = reinterpret_cast<char*>(memory.get());
    HIP_CHECK(hipStreamWriteValue32(stream, bytes + 1, 0x04030201, 7));
    HIP_CHECK(hipStreamWriteValue64(stream, bytes + 12, 0x1122334455667788, 0));
    HIP_CHECK(hipStreamWriteValue64(stream, bytes + 33, 0x0807060504030201, 0));
    HIP_CHECK(hipStreamWaitValue32(stream, bytes + 1, 0x04030201, hipStreamWaitValueEq, 0xffffffff));
    HIP_CHECK(hipStreamWaitValue64(stream, bytes + 12, 0x1122334455667788, hipStreamWaitValueEq, ~uint64_t{0}));
    HIP_CHECK(hipStreamSynchronize(stream));
    std::vector<uint64_t> now = memory.download();
    const unsigned char* found = reinterpret_cast<const unsigned char*>(now.data());
    EXPECT(found[0] == 0 && found[1] == 1 && found[4] == 4 && found[5] == 0 && found[12] == 0x88 && found[19] == 0x11 && found[40] == 8);
    int can = 0;
    HIP_CHECK(hipDeviceGetAttribute(&can, hipDeviceAttributeCanUseStreamWaitValue, 0));
    EXPECT(can == 1);
}

static hipStreamBatchMemOpParams op(hipStreamBatchMemOpType type, void* at, uint64_t value, unsigned flags = 0) {
    hipStreamBatchMemOpParams params{};
    params.writeValue.operation = type;
    params.writeValue.address = at;
    params.writeValue.value64 = value;
    params.writeValue.flags = flags;
    return params;
}

// Several operations at a time. AMD's release 6.4.3 launches a malformed kernel for them, 7.2.4 refuses all, and its nodes read the program's
// array when they are launched.
static void batches() {
    if (!is_hipr()) return;
    Stream stream, other;
    DeviceArray<uint64_t> memory(4);
    memory.fill_bytes(0);
    HIP_CHECK(hipDeviceSynchronize());
    uint64_t* at = memory.get();
    std::vector<hipStreamBatchMemOpParams> ops = {
        op(hipStreamMemOpWriteValue32, at, 0xffffffff00000005), op(hipStreamMemOpWriteValue64, at + 1, 0x700000006),
        op(hipStreamMemOpWaitValue64, at + 2, 9, hipStreamWaitValueEq), op(hipStreamMemOpWriteValue32, at + 3, 1),
        op(hipStreamMemOpWaitValue32, at, 5, hipStreamWaitValueEq)};
    HIP_CHECK(hipStreamBatchMemOp(stream, ops.size(), ops.data(), 0));
    pause();
    EXPECT(hipStreamQuery(stream) == hipErrorNotReady);
    HIP_CHECK(hipStreamWriteValue64(other, at + 2, 9, 0));
    HIP_CHECK(hipStreamSynchronize(stream));
    check::equal("a batch", memory.download(), {5, 0x700000006, 9, 1});
    EXPECT_ERROR(hipStreamBatchMemOp(stream, 0, ops.data(), 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipStreamBatchMemOp(stream, 1, nullptr, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipStreamBatchMemOp(stream, 1, ops.data(), 1), hipErrorInvalidValue);
    EXPECT_ERROR(hipStreamBatchMemOp(stream, 257, std::vector<hipStreamBatchMemOpParams>(257, ops[0]).data(), 0), hipErrorInvalidValue);
    for (int type : {0, 3, 6, 7}) {
        hipStreamBatchMemOpParams wrong[] = {ops[0], op(static_cast<hipStreamBatchMemOpType>(type), at, 0)};
        EXPECT_ERROR(hipStreamBatchMemOp(stream, 2, wrong, 0), hipErrorInvalidValue);
    }
    hipCtx_t context = nullptr;
    HIP_CHECK(hipCtxGetCurrent(&context));
    hipGraph_t graph = nullptr;
    hipGraphNode_t node = nullptr, fill = nullptr;
    HIP_CHECK(hipGraphCreate(&graph, 0));
    hipBatchMemOpNodeParams params{}, read{};
    params.ctx = context;
    params.count = 2;
    params.paramArray = ops.data();
    HIP_CHECK(hipGraphAddBatchMemOpNode(&node, graph, nullptr, 0, &params));
    hipGraphNodeType type{};
    HIP_CHECK(hipGraphNodeGetType(node, &type));
    EXPECT(type == hipGraphNodeTypeBatchMemOp);
    HIP_CHECK(hipGraphBatchMemOpNodeGetParams(node, &read));
    EXPECT(read.ctx == context && read.count == 2 && read.paramArray == ops.data() && read.flags == 0);
    hipMemsetParams bytes{};
    bytes.dst = at + 2;
    bytes.elementSize = bytes.width = bytes.height = 1;
    HIP_CHECK(hipGraphAddMemsetNode(&fill, graph, &node, 1, &bytes));
    EXPECT_ERROR(hipGraphBatchMemOpNodeGetParams(fill, &read), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphBatchMemOpNodeSetParams(fill, &params), hipErrorInvalidValue);
    hipGraphExec_t exec = nullptr;
    HIP_CHECK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    for (int launch = 0; launch < 3; launch++) {
        memory.fill_bytes(1);
        HIP_CHECK(hipDeviceSynchronize());
        HIP_CHECK(hipGraphLaunch(exec, stream));
        HIP_CHECK(hipStreamSynchronize(stream));
        EXPECT(memory.download()[0] == 0x0101010100000005 && memory.download()[1] == 0x700000006 && memory.download()[2] == 0x0101010101010100);
    }
    hipStreamBatchMemOpParams waits[] = {op(hipStreamMemOpWaitValue32, at + 3, 3, hipStreamWaitValueEq), op(hipStreamMemOpWriteValue32, at, 8)};
    params.paramArray = waits;
    HIP_CHECK(hipGraphExecBatchMemOpNodeSetParams(exec, node, &params));
    HIP_CHECK(hipGraphLaunch(exec, stream));
    pause();
    EXPECT(hipStreamQuery(stream) == hipErrorNotReady);
    HIP_CHECK(hipStreamWriteValue32(other, at + 3, 3, 0));
    HIP_CHECK(hipStreamSynchronize(stream));
    EXPECT(static_cast<uint32_t>(memory.download()[0]) == 8);
    params.ctx = nullptr;
    EXPECT_ERROR(hipGraphAddBatchMemOpNode(&fill, graph, nullptr, 0, &params), hipErrorInvalidValue);
    HIP_CHECK(hipGraphExecDestroy(exec));
    HIP_CHECK(hipGraphDestroy(graph));
}

int main() {
    check::begin("stream_values");
    // Without optimization kernels may need the device's heap, for whose first use AMD's runtime waits for the stream.
    DeviceArray<uint32_t> first(1);
    put<<<1, 1>>>(first.get(), 1);
    HIP_CHECK(hipDeviceSynchronize());
    for (int kind = 0; kind < kKinds; kind++) {
        conditions(static_cast<Kind>(kind));
        writers(static_cast<Kind>(kind));
        ping_pong(static_cast<Kind>(kind));
    }
    ordered();
    signals();
    errors();
    batches();
    return check::finish();
}
