// Two devices that may be of different workers: every kind of stream of one against every kind of work of the other, ordered by events, with
// copies between the two; and host memory that both use in turn. Generated: what is checked is the order that HIP gives.
//
// Usage: across_workers
#include "check.h"

#include <vector>

namespace {

constexpr int kCount = 1024;
constexpr size_t kBytes = kCount * sizeof(int);

// Takes long enough that what does not wait for it comes first.
__global__ void slow_store(int* out, int value) {
    for (int round = 0; round < 2000; round++) __builtin_amdgcn_s_sleep(1);
    out[threadIdx.x + blockIdx.x * blockDim.x] = value;
}
__global__ void copy(int* out, const int* in) {
    const int at = threadIdx.x + blockIdx.x * blockDim.x;
    out[at] = in[at];
}
__global__ void accumulate(int* out, int value) { out[threadIdx.x + blockIdx.x * blockDim.x] += value; }

enum StreamKind { kLegacy, kBlocking, kNonBlocking, kPerThread, kStreamKinds };
enum WorkKind { kPeerCopy, kCopy, kCopy2D, kCopy3D, kPeerCopyThere, kThroughHost, kWorkKinds };

struct Device {
    int number;
    int *memory, *other;
    hipStream_t streams[kStreamKinds];
    hipEvent_t event;
};

void enter(const Device& device) { HIP_CHECK(hipSetDevice(device.number)); }

Device open(int number) {
    Device device{};
    device.number = number;
    enter(device);
    HIP_CHECK(hipMalloc(&device.memory, kBytes));
    HIP_CHECK(hipMalloc(&device.other, kBytes));
    device.streams[kLegacy] = nullptr;
    HIP_CHECK(hipStreamCreate(&device.streams[kBlocking]));
    HIP_CHECK(hipStreamCreateWithFlags(&device.streams[kNonBlocking], hipStreamNonBlocking));
    device.streams[kPerThread] = hipStreamPerThread;
    HIP_CHECK(hipEventCreateWithFlags(&device.event, hipEventDisableTiming));
    return device;
}

void close(const Device& device) {
    enter(device);
    HIP_CHECK(hipFree(device.memory));
    HIP_CHECK(hipFree(device.other));
    HIP_CHECK(hipStreamDestroy(device.streams[kBlocking]));
    HIP_CHECK(hipStreamDestroy(device.streams[kNonBlocking]));
    HIP_CHECK(hipEventDestroy(device.event));
}

// Copies all from one device to the other on a stream, whose device is current.
void move(WorkKind kind, const Device& to, const Device& from, hipStream_t stream, int* host) {
    constexpr size_t kRow = 128, kRows = kBytes / kRow;
    switch (kind) {
        case kPeerCopy:
        case kPeerCopyThere:
            HIP_CHECK(hipMemcpyPeerAsync(to.memory, to.number, from.memory, from.number, kBytes, stream));
            break;
        case kCopy:
            HIP_CHECK(hipMemcpyAsync(to.memory, from.memory, kBytes, hipMemcpyDefault, stream));
            break;
        case kCopy2D:
            HIP_CHECK(hipMemcpy2DAsync(to.memory, kRow, from.memory, kRow, kRow, kRows, hipMemcpyDeviceToDevice, stream));
            break;
        case kCopy3D: {
            hipMemcpy3DParms all{};
            all.dstPtr = make_hipPitchedPtr(to.memory, kRow, kRow, 4);
            all.srcPtr = make_hipPitchedPtr(from.memory, kRow, kRow, 4);
            all.extent = make_hipExtent(kRow, 4, kRows / 4);
            all.kind = hipMemcpyDeviceToDevice;
            HIP_CHECK(hipMemcpy3DAsync(&all, stream));
            break;
        }
        default:
            HIP_CHECK(hipMemcpyAsync(host, from.memory, kBytes, hipMemcpyDeviceToHost, stream));
            HIP_CHECK(hipMemcpyAsync(to.memory, host, kBytes, hipMemcpyHostToDevice, stream));
    }
}

// One device makes values, the other one is told by an event and uses them, and gives them back.
void there_and_back(const Device& a, const Device& b, hipStream_t first, hipStream_t second, WorkKind kind, int value, int* host) {
    enter(a);
    slow_store<<<kCount / 256, 256, 0, first>>>(a.memory, value);
    // A copy by the stream that made the values, or, behind the event, by one that waits for it.
    if (kind == kPeerCopyThere) move(kind, b, a, first, host);
    HIP_CHECK(hipEventRecord(a.event, first));
    enter(b);
    HIP_CHECK(hipStreamWaitEvent(second, a.event, 0));
    if (kind != kPeerCopyThere) move(kind, b, a, second, host);
    accumulate<<<kCount / 256, 256, 0, second>>>(b.memory, 1);
    copy<<<kCount / 256, 256, 0, second>>>(b.other, b.memory);
    HIP_CHECK(hipEventRecord(b.event, second));
    // What was recorded is meant, whatever the event is recorded for later.
    enter(a);
    HIP_CHECK(hipStreamWaitEvent(first, b.event, 0));
    HIP_CHECK(hipMemcpyPeerAsync(a.other, a.number, b.other, b.number, kBytes, first));
    accumulate<<<kCount / 256, 256, 0, first>>>(a.other, 1);
    enter(b);
    HIP_CHECK(hipEventRecord(b.event, second));
    enter(a);
    std::vector<int> result(kCount, -1);
    HIP_CHECK(hipMemcpyAsync(result.data(), a.other, kBytes, hipMemcpyDeviceToHost, first));
    HIP_CHECK(hipStreamSynchronize(first));
    for (int found : result) EXPECT(found == value + 2);
}

void all_orders(const Device& a, const Device& b) {
    int *host = nullptr, value = 0;
    HIP_CHECK(hipHostMalloc(&host, kBytes, hipHostMallocPortable));
    for (int first = 0; first < kStreamKinds; first++)
        for (int second = 0; second < kStreamKinds; second++)
            for (int kind = 0; kind < kWorkKinds; kind++) {
                value += 10;
                const Device &one = value % 20 ? a : b, &other = value % 20 ? b : a;
                there_and_back(one, other, one.streams[first], other.streams[second], WorkKind(kind), value, host);
            }
    HIP_CHECK(hipHostFree(host));
}

// Long copies, with and without gaps, at odd places.
void sizes(const Device& a, const Device& b) {
    for (size_t bytes : {size_t(1), size_t(4095), size_t(65537), (size_t(33) << 20) + 5}) {
        std::vector<unsigned char> from(bytes), to(bytes);
        for (size_t at = 0; at < bytes; at++) from[at] = static_cast<unsigned char>(at * 7 + at / 251);
        unsigned char *there[2];
        for (int device : {0, 1}) {
            enter(device ? b : a);
            HIP_CHECK(hipMalloc(&there[device], bytes + 3));
        }
        HIP_CHECK(hipMemcpy(there[0] + 3, from.data(), bytes, hipMemcpyHostToDevice));
        HIP_CHECK(hipMemcpy(there[1] + 1, there[0] + 3, bytes, hipMemcpyDeviceToDevice));
        HIP_CHECK(hipMemcpy(to.data(), there[1] + 1, bytes, hipMemcpyDeviceToHost));
        EXPECT(std::memcmp(to.data(), from.data(), bytes) == 0);
        if (bytes > 100) {
            // Every other row of a part.
            const size_t row = 50, rows = std::min<size_t>(bytes / 100, 5000);
            HIP_CHECK(hipMemset(there[1], 0, bytes));
            HIP_CHECK(hipMemcpy2D(there[1], 2 * row, there[0] + 3, row, row, rows, hipMemcpyDefault));
            HIP_CHECK(hipMemcpy(to.data(), there[1], 2 * row * rows, hipMemcpyDeviceToHost));
            bool is_right = true;
            for (size_t y = 0; y < rows; y++)
                for (size_t x = 0; x < 2 * row; x++) is_right &= to[y * 2 * row + x] == (x < row ? from[y * row + x] : 0);
            EXPECT(is_right);
        }
        for (unsigned char* memory : there) HIP_CHECK(hipFree(memory));
    }
}

// Fills and copies of a device's memory on a stream of the other one.
void streams_of_others(const Device& a, const Device& b) {
    for (int kind = 0; kind < kStreamKinds; kind++) {
        enter(a);
        hipStream_t stream = a.streams[kind];
        const int value = 7 + kind;
        std::vector<int> host(kCount, value), back(kCount, 0);
        slow_store<<<kCount / 256, 256, 0, stream>>>(a.memory, 1);
        HIP_CHECK(hipMemsetAsync(b.memory, 0x11, kBytes, stream));
        HIP_CHECK(hipMemcpyAsync(back.data(), b.memory, kBytes, hipMemcpyDeviceToHost, stream));
        HIP_CHECK(hipStreamSynchronize(stream));
        EXPECT(back[0] == 0x11111111 && back[kCount - 1] == 0x11111111);
        HIP_CHECK(hipMemcpyAsync(b.memory, host.data(), kBytes, hipMemcpyHostToDevice, stream));
        HIP_CHECK(hipMemsetD32Async(b.memory, 5, 1, stream));
        HIP_CHECK(hipMemcpyAsync(b.other, b.memory, kBytes, hipMemcpyDeviceToDevice, stream));
        HIP_CHECK(hipMemcpyAsync(back.data(), b.other, kBytes, hipMemcpyDeviceToHost, stream));
        HIP_CHECK(hipStreamSynchronize(stream));
        EXPECT(back[0] == 5 && back[1] == value && back[kCount - 1] == value);
    }
}

// A list in managed memory: each node is followed by the kernel, on either device.
struct Entry {
    Entry* next;
    int value;
};
__global__ void walk(Entry* entry, int add) {
    for (; entry; entry = entry->next) entry->value += add;
}

void managed_lists(const Device& a, const Device& b) {
    constexpr int kEntries = 5;
    for (int round = 0; round < 2; round++) {
        Entry* entries[kEntries];
        for (int at = 0; at < kEntries; at++) {
            enter((at + round) % 2 ? a : b);
            if (round == 0) HIP_CHECK(hipMallocManaged(reinterpret_cast<void**>(&entries[at]), sizeof(Entry)));
            else HIP_CHECK(hipHostMalloc(reinterpret_cast<void**>(&entries[at]), sizeof(Entry), hipHostMallocMapped));
            *entries[at] = {at ? entries[at - 1] : nullptr, at};
        }
        for (int turn = 0; turn < 4; turn++) {
            enter(turn % 2 ? b : a);
            walk<<<1, 1>>>(entries[kEntries - 1], 10);
            HIP_CHECK(hipDeviceSynchronize());
            for (int at = 0; at < kEntries; at++) EXPECT(entries[at]->value == at + 10 * (turn + 1) + turn);
            for (Entry* entry : entries) entry->value++;
        }
        for (Entry* entry : entries) HIP_CHECK(round == 0 ? hipFree(entry) : hipHostFree(entry));
    }
}

// Host functions between work of both.
void host_functions(const Device& a, const Device& b) {
    static int calls;
    calls = 0;
    for (int kind = 0; kind < kStreamKinds; kind++) {
        enter(a);
        hipStream_t first = a.streams[kind], second = b.streams[kNonBlocking];
        slow_store<<<kCount / 256, 256, 0, first>>>(a.memory, kind);
        HIP_CHECK(hipLaunchHostFunc(first, [](void*) { calls++; }, nullptr));
        HIP_CHECK(hipEventRecord(a.event, first));
        enter(b);
        HIP_CHECK(hipStreamWaitEvent(second, a.event, 0));
        HIP_CHECK(hipLaunchHostFunc(second, [](void* expected) { EXPECT(calls == *static_cast<int*>(expected)); }, new int(kind + 1)));
        HIP_CHECK(hipMemcpyAsync(b.memory, a.memory, kBytes, hipMemcpyDefault, second));
        std::vector<int> back(kCount, -1);
        HIP_CHECK(hipMemcpyAsync(back.data(), b.memory, kBytes, hipMemcpyDeviceToHost, second));
        HIP_CHECK(hipStreamSynchronize(second));
        EXPECT(back[0] == kind && back[kCount - 1] == kind && calls == kind + 1);
    }
}

// A captured piece of both devices, launched again and again.
// A device writes to host memory; copies and fills of it on streams of either device, whichever is current.
void current_devices(const Device& a, const Device& b) {
    for (int kind = 0; kind < 4; kind++) {
        int *host = nullptr, *known = nullptr;
        std::vector<int> own(kCount), found(kCount);
        switch (kind) {
        case 0: HIP_CHECK(hipHostMalloc(&host, kBytes, 0)); break;
        case 1: HIP_CHECK(hipHostMalloc(&host, kBytes, hipHostMallocMapped)); break;
        case 2: HIP_CHECK(hipMallocManaged(&host, kBytes)); break;
        default:
            host = own.data();
            HIP_CHECK(hipHostRegister(host, kBytes, hipHostRegisterDefault));
        }
        for (int round = 0; round < 8; round++) {
            const Device &writer = round & 1 ? a : b, &mover = round & 2 ? a : b, &current = round & 4 ? a : b;
            const hipStream_t stream = mover.streams[kNonBlocking];
            const int value = 100 * kind + round + 1;
            enter(writer);
            HIP_CHECK(hipHostGetDevicePointer(reinterpret_cast<void**>(&known), host, 0));
            slow_store<<<4, kCount / 4, 0, writer.streams[kBlocking]>>>(known, value);
            HIP_CHECK(hipEventRecord(writer.event, writer.streams[kBlocking]));
            HIP_CHECK(hipStreamWaitEvent(stream, writer.event, 0));
            enter(current);
            HIP_CHECK(hipMemcpyAsync(mover.memory, host, kBytes, hipMemcpyHostToDevice, stream));
            HIP_CHECK(hipMemcpyAsync(found.data(), host, kBytes, hipMemcpyHostToHost, stream));
            HIP_CHECK(hipMemsetD32Async(host, value + 50, kCount / 2, stream));
            HIP_CHECK(hipStreamSynchronize(stream));
            for (int at = 0; at < kCount; at++) {
                EXPECT(found[at] == value);
                EXPECT(host[at] == value + (at < kCount / 2 ? 50 : 0));
            }
            HIP_CHECK(hipMemcpy(found.data(), mover.memory, kBytes, hipMemcpyDeviceToHost));
            for (int at = 0; at < kCount; at++) EXPECT(found[at] == value);
        }
        if (kind == 3) {
            HIP_CHECK(hipHostUnregister(host));
        } else {
            HIP_CHECK(kind == 2 ? hipFree(host) : hipHostFree(host));
        }
    }
}

// A stream of one device waits for a value that the other one writes, in memory of the program and of either device.
void values(const Device& a, const Device& b) {
    unsigned* host = nullptr;
    HIP_CHECK(hipHostMalloc(&host, 64, 0));
    *host = 0;
    unsigned value = 0;
    for (const Device* waits : {&a, &b}) {
        const Device& writes = waits == &a ? b : a;
        value++;
        enter(*waits);
        const hipStream_t waiting = waits->streams[kNonBlocking];
        HIP_CHECK(hipStreamWaitValue32(waiting, host, value, hipStreamWaitValueEq, 0xffffffff));
        slow_store<<<1, 64, 0, waiting>>>(waits->memory, 7);
        enter(writes);
        slow_store<<<1, 64, 0, writes.streams[kBlocking]>>>(writes.memory, 8);
        HIP_CHECK(hipStreamWriteValue32(writes.streams[kBlocking], host, value, 0));
        enter(*waits);
        HIP_CHECK(hipStreamSynchronize(waiting));
        EXPECT(*host == value);
        int found = 0;
        HIP_CHECK(hipMemcpy(&found, waits->memory, sizeof found, hipMemcpyDeviceToHost));
        EXPECT(found == 7);
    }
    HIP_CHECK(hipHostFree(host));
}

void graphs(const Device& a, const Device& b) {
    enter(a);
    hipStream_t first = a.streams[kNonBlocking], second = b.streams[kNonBlocking];
    hipGraph_t graph;
    hipGraphExec_t instance;
    HIP_CHECK(hipStreamBeginCapture(first, hipStreamCaptureModeRelaxed));
    accumulate<<<kCount / 256, 256, 0, first>>>(a.memory, 3);
    HIP_CHECK(hipMemcpyAsync(b.memory, a.memory, kBytes, hipMemcpyDeviceToDevice, first));
    HIP_CHECK(hipMemcpyAsync(a.other, b.memory, kBytes, hipMemcpyDeviceToDevice, first));
    HIP_CHECK(hipStreamEndCapture(first, &graph));
    HIP_CHECK(hipGraphInstantiate(&instance, graph, nullptr, nullptr, 0));
    HIP_CHECK(hipMemset(a.memory, 0, kBytes));
    HIP_CHECK(hipDeviceSynchronize());
    std::vector<int> back(kCount, -1);
    for (int round = 1; round <= 4; round++) {
        HIP_CHECK(hipGraphLaunch(instance, first));
        HIP_CHECK(hipMemcpyAsync(back.data(), a.other, kBytes, hipMemcpyDeviceToHost, first));
        HIP_CHECK(hipStreamSynchronize(first));
        EXPECT(back[0] == 3 * round && back[kCount - 1] == 3 * round);
    }
    enter(b);
    HIP_CHECK(hipStreamSynchronize(second));
    HIP_CHECK(hipGraphExecDestroy(instance));
    HIP_CHECK(hipGraphDestroy(graph));
}

} // namespace

int main() {
    check::begin("across_workers");
    int count = 0;
    HIP_CHECK(hipGetDeviceCount(&count));
    if (count > 1) {
        const Device a = open(0), b = open(1);
        all_orders(a, b);
        sizes(a, b);
        streams_of_others(a, b);
        managed_lists(a, b);
        host_functions(a, b);
        graphs(a, b);
        current_devices(a, b);
        values(a, b);
        close(a);
        close(b);
    }
    return check::finish();
}
