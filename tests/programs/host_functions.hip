// Functions of the program in the order of a stream, which wait for what the program does after the call that put them there: more work on
// the same stream, on others, on the legacy stream, questions, memory, graphs, other threads, other functions. None of these calls may
// wait for the function, but hipStreamDestroy on AMD's runtime. A program that hangs is ended by a signal. The kernels are those that module.hip loads.
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

#include "check.h"
#include "runtime.h"

static const int kCount = 1000;
static const size_t kBytes = kCount * sizeof(float);
static const unsigned kLimitSeconds = 120;

static const char* now = "";

static void out_of_time(int) {
    const char text[] = "host_functions: a call waits for a function that waits for the program: ";
    if (write(2, text, sizeof text - 1) < 0 || write(2, now, std::strlen(now)) < 0 || write(2, "\n", 1) < 0) _exit(4);
    _exit(3);
}

// What a function waits for; then it writes numbers, if it has a place for them.
class Gate {
public:
    void open() {
        std::lock_guard<std::mutex> guard(mutex_);
        is_open_ = true;
        opened_.notify_all();
    }
    void wait() {
        std::unique_lock<std::mutex> guard(mutex_);
        opened_.wait(guard, [this] { return is_open_; });
        for (int i = 0; numbers && i < kCount; i++) numbers[i] = static_cast<float>(first + i);
        returned = true;
    }
    float* numbers = nullptr;
    int first = 0;
    std::atomic<bool> returned{false};

private:
    std::mutex mutex_;
    std::condition_variable opened_;
    bool is_open_ = false;
};

static void wait_for(void* gate) { static_cast<Gate*>(gate)->wait(); }
static void open_gate(void* gate) { static_cast<Gate*>(gate)->open(); }
static void wait_and_look(hipStream_t, hipError_t status, void* gate) {
    EXPECT(status == hipSuccess);
    static_cast<Gate*>(gate)->wait();
}

struct Things {
    hipStream_t stream, other, free_stream; // free: the legacy stream does not wait for it
    hipEvent_t event;
    hipFunction_t scale;
    float *in, *out;           // host memory that HIP knows
    float *device, *result;    // device memory

    // result = 2 * device, when everything before it on the stream is over.
    void scale_on(hipStream_t s) {
        int count = kCount;
        void* parameters[] = {&device, &result, &count};
        HIP_CHECK(hipModuleLaunchKernel(scale, (kCount + 63) / 64, 1, 1, 64, 1, 1, 0, s, parameters, nullptr));
    }
    void to_device_on(hipStream_t s) { HIP_CHECK(hipMemcpyAsync(device, in, kBytes, hipMemcpyHostToDevice, s)); }
    void to_host_on(hipStream_t s) { HIP_CHECK(hipMemcpyAsync(out, result, kBytes, hipMemcpyDeviceToHost, s)); }
    void forget() {
        std::fill_n(in, kCount, -1.f);
        std::fill_n(out, kCount, -1.f);
        HIP_CHECK(hipMemset(device, 0, kBytes));
        HIP_CHECK(hipMemset(result, 0, kBytes));
        HIP_CHECK(hipDeviceSynchronize());
    }
    void check(const char* what, int first) {
        std::vector<float> got(out, out + kCount), want(kCount);
        for (int i = 0; i < kCount; i++) want[i] = 2.f * static_cast<float>(first + i);
        check::equal(what, got, want);
    }
};

// The function writes what the copy behind it reads.
static void same_stream(Things& t) {
    Gate gate;
    gate.numbers = t.in, gate.first = 1;
    HIP_CHECK(hipLaunchHostFunc(t.stream, wait_for, &gate));
    t.to_device_on(t.stream);
    t.scale_on(t.stream);
    t.to_host_on(t.stream);
    Gate second;
    HIP_CHECK(hipStreamAddCallback(t.stream, wait_and_look, &second, 0));
    HIP_CHECK(hipMemsetAsync(t.result, 0, kBytes, t.stream));
    HIP_CHECK(hipEventRecord(t.event, t.stream));
    EXPECT_ERROR(hipStreamQuery(t.stream), hipErrorNotReady);
    EXPECT_ERROR(hipEventQuery(t.event), hipErrorNotReady);
    EXPECT(!gate.returned);
    gate.open();
    EXPECT_ERROR(hipEventQuery(t.event), hipErrorNotReady); // the second one waits
    second.open();
    HIP_CHECK(hipEventSynchronize(t.event));
    EXPECT(gate.returned && second.returned);
    HIP_CHECK(hipEventQuery(t.event));
    HIP_CHECK(hipStreamSynchronize(t.stream));
    HIP_CHECK(hipStreamQuery(t.stream));
    t.check("same stream", 1);
}

static void other_streams(Things& t) {
    Gate gate;
    gate.numbers = t.in, gate.first = 7;
    HIP_CHECK(hipLaunchHostFunc(t.stream, wait_for, &gate));
    // A stream that has nothing to do with it goes on.
    HIP_CHECK(hipMemsetAsync(t.result, 1, kBytes, t.free_stream));
    t.to_host_on(t.free_stream);
    HIP_CHECK(hipStreamSynchronize(t.free_stream));
    int bits = 0;
    std::memcpy(&bits, t.out + kCount - 1, sizeof bits);
    EXPECT(bits == 0x01010101 && !gate.returned);
    // One that waits for an event behind the function does not.
    t.to_device_on(t.stream);
    HIP_CHECK(hipEventRecord(t.event, t.stream));
    HIP_CHECK(hipStreamWaitEvent(t.free_stream, t.event, 0));
    t.scale_on(t.free_stream);
    t.to_host_on(t.free_stream);
    EXPECT_ERROR(hipStreamQuery(t.free_stream), hipErrorNotReady);
    EXPECT(!gate.returned);
    gate.open();
    HIP_CHECK(hipStreamSynchronize(t.free_stream));
    EXPECT(gate.returned);
    t.check("another stream", 7);
}

// A stream waits for what the event was when the program asked for it, although functions hold up both, and the event is recorded anew meanwhile, which
// waits for nobody.
static void recorded_again(Things& t) {
    Gate before, behind;
    before.numbers = t.in, before.first = 50;
    HIP_CHECK(hipLaunchHostFunc(t.stream, wait_for, &before));
    const size_t large = size_t{64} << 20;
    void* slow = nullptr;
    HIP_CHECK(hipMalloc(&slow, large));
    for (int i = 0; i < 8; i++) HIP_CHECK(hipMemsetAsync(slow, i, large, t.stream));
    t.to_device_on(t.stream);
    HIP_CHECK(hipEventRecord(t.event, t.stream));
    HIP_CHECK(hipLaunchHostFunc(t.free_stream, wait_for, &behind));
    HIP_CHECK(hipStreamWaitEvent(t.free_stream, t.event, 0));
    t.scale_on(t.free_stream);
    t.to_host_on(t.free_stream);
    before.open();
    HIP_CHECK(hipEventRecord(t.event, t.other));
    EXPECT(!behind.returned);
    HIP_CHECK(hipEventSynchronize(t.event));
    EXPECT(!behind.returned);
    behind.open();
    HIP_CHECK(hipStreamSynchronize(t.free_stream));
    EXPECT(before.returned && behind.returned);
    t.check("an event that is recorded again", 50);
    HIP_CHECK(hipFree(slow));
}

// The legacy stream waits for blocking streams, and they for it.
static void legacy_stream(Things& t) {
    Gate gate;
    gate.numbers = t.in, gate.first = 20;
    HIP_CHECK(hipLaunchHostFunc(t.stream, wait_for, &gate));
    t.to_device_on(nullptr);
    t.scale_on(t.other);
    t.to_host_on(t.other);
    EXPECT(!gate.returned);
    gate.open();
    HIP_CHECK(hipStreamSynchronize(t.other));
    EXPECT(gate.returned);
    t.check("legacy stream", 20);
}

static void memory(Things& t) {
    Gate gate;
    HIP_CHECK(hipLaunchHostFunc(t.stream, wait_for, &gate));
    void *some = nullptr, *ordered = nullptr, *pinned = nullptr;
    HIP_CHECK(hipMalloc(&some, 1 << 16));
    HIP_CHECK(hipMallocAsync(&ordered, 1 << 16, t.stream));
    HIP_CHECK(hipHostMalloc(&pinned, 1 << 16, 0));
    HIP_CHECK(hipMemsetAsync(ordered, 5, 1 << 16, t.stream));
    HIP_CHECK(hipMemcpyAsync(some, ordered, 1 << 16, hipMemcpyDeviceToDevice, t.stream));
    HIP_CHECK(hipMemcpyAsync(pinned, some, 1 << 16, hipMemcpyDeviceToHost, t.stream));
    HIP_CHECK(hipFreeAsync(ordered, t.stream));
    unsigned flags = 7;
    HIP_CHECK(hipStreamGetFlags(t.stream, &flags));
    EXPECT(flags == 0 && !gate.returned);
    EXPECT_ERROR(hipMemcpyAsync(some, nullptr, 4, hipMemcpyDeviceToDevice, t.stream), hipErrorInvalidValue);
    gate.open();
    HIP_CHECK(hipDeviceSynchronize());
    EXPECT(gate.returned && static_cast<char*>(pinned)[(1 << 16) - 1] == 5);
    HIP_CHECK(hipFree(some));
    HIP_CHECK(hipHostFree(pinned));
}

// The end of what is still to be used.
static void short_lives(Things& t) {
    Gate gate;
    gate.numbers = t.in, gate.first = 3;
    hipStream_t stream;
    hipEvent_t event;
    HIP_CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    HIP_CHECK(hipEventCreate(&event));
    HIP_CHECK(hipLaunchHostFunc(stream, wait_for, &gate));
    t.to_device_on(stream);
    HIP_CHECK(hipEventRecord(event, stream));
    HIP_CHECK(hipStreamWaitEvent(t.free_stream, event, 0));
    HIP_CHECK(hipEventDestroy(event));
    // HIP lets hipStreamDestroy wait for all work of the stream, which AMD's runtime does.
    const bool waits = check::amds_release() > 0;
    if (waits) gate.open();
    HIP_CHECK(hipStreamDestroy(stream));
    t.scale_on(t.free_stream);
    t.to_host_on(t.free_stream);
    EXPECT(gate.returned == waits);
    gate.open();
    HIP_CHECK(hipStreamSynchronize(t.free_stream));
    t.check("short lives", 3);
}

// The functions of two streams wait for each other, and for a thread that uses both streams.
static void threads(Things& t) {
    Gate first, second, third;
    HIP_CHECK(hipLaunchHostFunc(t.stream, wait_for, &first));
    HIP_CHECK(hipLaunchHostFunc(t.stream, open_gate, &second));
    HIP_CHECK(hipLaunchHostFunc(t.free_stream, wait_for, &third));
    HIP_CHECK(hipLaunchHostFunc(t.free_stream, open_gate, &first));
    HIP_CHECK(hipLaunchHostFunc(t.free_stream, wait_for, &second));
    std::thread thread([&] {
        for (hipStream_t stream : {t.stream, t.free_stream, t.other}) HIP_CHECK(hipMemsetAsync(t.device, 0, kBytes, stream));
        HIP_CHECK(hipEventRecord(t.event, t.stream));
        HIP_CHECK(hipStreamSynchronize(t.other));
        EXPECT(!first.returned && !third.returned);
        third.open();
    });
    HIP_CHECK(hipStreamSynchronize(t.stream));
    HIP_CHECK(hipStreamSynchronize(t.free_stream));
    thread.join();
    EXPECT(first.returned && second.returned && third.returned);
}

// A function in the middle of a graph, which is launched three times: step by step, and with parts that the worker has.
static void graphs(Things& t) {
    hipStream_t stream;
    HIP_CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    Gate gate;
    gate.numbers = t.in;
    hipGraph_t graph;
    hipGraphExec_t ready;
    HIP_CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    HIP_CHECK(hipMemsetAsync(t.device, 0, kBytes, stream));
    HIP_CHECK(hipMemsetAsync(t.result, 0, kBytes, stream));
    HIP_CHECK(hipLaunchHostFunc(stream, wait_for, &gate));
    t.to_device_on(stream);
    t.scale_on(stream);
    t.scale_on(stream);
    t.to_host_on(stream);
    HIP_CHECK(hipStreamEndCapture(stream, &graph));
    HIP_CHECK(hipGraphInstantiate(&ready, graph, nullptr, nullptr, 0));
    HIP_CHECK(hipGraphDestroy(graph));
    for (int launch = 0; launch < 3; launch++) {
        Gate before;
        gate.first = 10 * launch;
        HIP_CHECK(hipLaunchHostFunc(stream, wait_for, &before));
        HIP_CHECK(hipGraphLaunch(ready, stream));
        EXPECT_ERROR(hipStreamQuery(stream), hipErrorNotReady);
        before.open();
        if (launch == 2) {
            HIP_CHECK(hipGraphExecDestroy(ready));
        }
        gate.open(); // and it stays open
        HIP_CHECK(hipStreamSynchronize(stream));
        t.check("graph", gate.first);
        t.forget();
    }
    HIP_CHECK(hipStreamDestroy(stream));
}

int main() {
    check::begin("host_functions");
    std::signal(SIGALRM, out_of_time);
    alarm(kLimitSeconds);

    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    std::string program(path, length > 0 ? static_cast<size_t>(length) : 0);
    size_t slash = program.rfind('/'), dot = program.rfind('.');
    hipModule_t module;
    HIP_CHECK(hipModuleLoad(&module, (program.substr(0, slash + 1) + "module_kernels" + program.substr(dot) + ".co").c_str()));

    Things t = {};
    HIP_CHECK(hipModuleGetFunction(&t.scale, module, "scale_values"));
    HIP_CHECK(hipStreamCreate(&t.stream));
    HIP_CHECK(hipStreamCreate(&t.other));
    HIP_CHECK(hipStreamCreateWithFlags(&t.free_stream, hipStreamNonBlocking));
    HIP_CHECK(hipEventCreate(&t.event));
    HIP_CHECK(hipHostMalloc(reinterpret_cast<void**>(&t.in), kBytes, 0));
    HIP_CHECK(hipHostMalloc(reinterpret_cast<void**>(&t.out), kBytes, 0));
    HIP_CHECK(hipMalloc(reinterpret_cast<void**>(&t.device), kBytes));
    HIP_CHECK(hipMalloc(reinterpret_cast<void**>(&t.result), kBytes));
    HIP_CHECK(hipMemset(t.device, 0, kBytes));

    // The first launch may wait: a runtime sets up what kernels allocate from.
    for (hipStream_t stream : {t.stream, t.other, t.free_stream}) t.scale_on(stream);
    HIP_CHECK(hipDeviceSynchronize());

    const struct {
        const char* name;
        void (*run)(Things&);
    } all[] = {{"same stream", same_stream}, {"other streams", other_streams}, {"recorded again", recorded_again}, {"legacy stream", legacy_stream}, {"memory", memory},
               {"short lives", short_lives}, {"threads", threads}, {"graphs", graphs}};
    for (const auto& one : all) {
        // AMD's runtime calls all functions one after another, also those of streams that have nothing to do with each other, and release 7
        // allocates only when what is before on the stream is done.
        if ((one.run == threads && check::amds_release() > 0) || (one.run == memory && check::amds_release() == 7)) continue;
        now = one.name;
        t.forget();
        one.run(t);
    }

    HIP_CHECK(hipFree(t.device));
    HIP_CHECK(hipFree(t.result));
    HIP_CHECK(hipHostFree(t.in));
    HIP_CHECK(hipHostFree(t.out));
    HIP_CHECK(hipModuleUnload(module));
    return check::finish();
}
