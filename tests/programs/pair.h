// What every program of pairs/ uses: two devices, and a place in the middle of the work at which one of them may be lost.
//
// Usage: PROGRAM            the work; the line "PASS name: ..., N looks, M orders, K copies" says how many results the program has looked at,
//                           how often one device had to wait for the other, and how many copies there were between both
//        PROGRAM lose 0|1   prints "MIDDLE" in the middle of the work and reads a line; meanwhile the worker of that device ends. From then on
//                           a call may fail, with hipErrorContextIsDestroyed. One has to; and what is on the other device is still there, and
//                           new work on it is right.
#pragma once
#include "check.h"

#include <atomic>
#include <mutex>

namespace pair {

inline int lost = -1; // the number of the device that is to be lost
inline std::atomic<bool> is_past_middle{false};
inline std::atomic<long> looks{0}, orders{0}, copies{0};
constexpr int kKeptCount = 1000;
inline int* kept[2]; // what each device has from the beginning

static __global__ void store_kept(int* out, int value) {
    const int at = threadIdx.x + blockIdx.x * blockDim.x;
    if (at < kKeptCount) out[at] = value + at;
}

[[noreturn]] inline void end(const char* format, const char* call, hipError_t error, const char* file, int line) {
    std::printf(format, check::program, file, line, call, hipGetErrorName(error));
    std::fflush(stdout);
    std::_Exit(std::strncmp(format, "PASS", 4) == 0 ? check::kPass : check::kFail);
}

inline void must(hipError_t error, const char* call, const char* file, int line) {
    if (error != hipSuccess) end("FAIL %s: %s:%d: on the device that is left %s gave %s\n", call, error, file, line);
}
#define MUST(call) pair::must((call), #call, __FILE__, __LINE__)

// Uses the device that is left: its memory, a stream, an event, a kernel.
inline void use_what_is_left() {
    const int left = 1 - lost;
    std::vector<int> found(kKeptCount);
    const size_t bytes = kKeptCount * sizeof(int);
    MUST(hipSetDevice(left));
    for (int base : {left * 5000, 77}) {
        MUST(hipMemcpy(found.data(), kept[left], bytes, hipMemcpyDeviceToHost));
        for (int i = 0; i < kKeptCount; i++)
            if (found[i] != base + i) end("FAIL %s: %s:%d: wrong values: %s, %s\n", "memory of the device that is left", hipSuccess, __FILE__, __LINE__);
        hipStream_t stream;
        hipEvent_t event;
        MUST(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
        MUST(hipEventCreate(&event));
        store_kept<<<8, 128, 0, stream>>>(kept[left], 77);
        MUST(hipGetLastError());
        MUST(hipEventRecord(event, stream));
        MUST(hipEventSynchronize(event));
        MUST(hipEventDestroy(event));
        MUST(hipStreamDestroy(stream));
    }
}

inline void hip(hipError_t error, const char* call, const char* file, int line) {
    if (error == hipSuccess) return;
    static std::mutex one;
    one.lock(); // the first thread's verdict is the only one
    if (lost >= 0 && is_past_middle && error == hipErrorContextIsDestroyed) {
        use_what_is_left();
        end("PASS %s: %s:%d: %s gave %s; the other device goes on\n", call, error, file, line);
    }
    end("FAIL %s: %s:%d: %s gave %s\n", call, error, file, line);
}

#undef HIP_CHECK
#define HIP_CHECK(call) pair::hip((call), #call, __FILE__, __LINE__)

inline void enter(int device) { HIP_CHECK(hipSetDevice(device)); }

// To be called first. Ends the program where there are not two devices.
inline void begin(const char* name, int argc, char** argv) {
    check::begin(name);
    int count = 0;
    HIP_CHECK(hipGetDeviceCount(&count));
    if (count < 2) {
        std::printf("NODEVICE %s: two devices are needed, there is %d\n", name, count);
        std::exit(check::kNoDevice);
    }
    if (argc > 2 && std::strcmp(argv[1], "lose") == 0) lost = std::atoi(argv[2]);
    for (int device : {1, 0}) {
        enter(device);
        HIP_CHECK(hipMalloc(&kept[device], kKeptCount * sizeof(int)));
        store_kept<<<8, 128>>>(kept[device], device * 5000);
        HIP_CHECK(hipGetLastError());
    }
}

// The middle of the work, where a device may be lost. Both devices should have work that is not over.
inline void middle() {
    if (lost < 0 || is_past_middle) return;
    std::printf("MIDDLE\n");
    std::fflush(stdout);
    char line[64];
    if (!std::fgets(line, sizeof line, stdin)) std::_Exit(check::kFail);
    is_past_middle = true;
}

// The verdict; the value is main's.
inline int finish() {
    for (int device : {0, 1}) {
        enter(device);
        HIP_CHECK(hipDeviceSynchronize());
        HIP_CHECK(hipFree(kept[device]));
    }
    if (lost >= 0) end("FAIL %s: %s:%d: a device was lost, and no call failed: %s, %s\n", "finish", hipSuccess, __FILE__, __LINE__);
    if (check::failures == 0)
        std::printf("PASS %s: %ld values compared, %ld looks, %ld orders, %ld copies\n", check::program, check::values_compared, looks.load(), orders.load(), copies.load());
    else
        std::printf("FAIL %s: %d checks failed\n", check::program, check::failures);
    std::fflush(stdout);
    return check::failures == 0 ? check::kPass : check::kFail;
}

// Makes device memory of `count` values.
template <class T> T* allocate(int device, size_t count) {
    T* memory = nullptr;
    enter(device);
    HIP_CHECK(hipMalloc(reinterpret_cast<void**>(&memory), count * sizeof(T)));
    return memory;
}

// Makes device memory with these values.
template <class T> T* allocate(int device, const std::vector<T>& values) {
    T* memory = allocate<T>(device, values.size());
    HIP_CHECK(hipMemcpy(memory, values.data(), values.size() * sizeof(T), hipMemcpyHostToDevice));
    return memory;
}

// Looks at device memory, behind the work of the null stream and of streams that it waits for.
template <class T> std::vector<T> look(const T* memory, size_t count) {
    std::vector<T> values(count);
    HIP_CHECK(hipMemcpy(values.data(), memory, count * sizeof(T), hipMemcpyDeviceToHost));
    looks++;
    return values;
}

// Waits for a stream, to look at what it has done.
inline void wait(hipStream_t stream) {
    HIP_CHECK(hipStreamSynchronize(stream));
    looks++;
}

// A stream of a device, with an event for what others wait for.
struct Queue {
    int device;
    hipStream_t stream;
    hipEvent_t event;

    explicit Queue(int device) : device(device) {
        enter(device);
        HIP_CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
        HIP_CHECK(hipEventCreateWithFlags(&event, hipEventDisableTiming));
    }
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;
    void close() {
        enter(device);
        HIP_CHECK(hipEventDestroy(event));
        HIP_CHECK(hipStreamDestroy(stream));
    }
    // What this queue gets later comes behind what the other one has now.
    void after(Queue& other) {
        enter(other.device);
        HIP_CHECK(hipEventRecord(other.event, other.stream));
        enter(device);
        HIP_CHECK(hipStreamWaitEvent(stream, other.event, 0));
        if (device != other.device) orders++;
    }
    // Copies values of the other device on this queue.
    template <class T> void copy(T* to, int to_device, const T* from, int from_device, size_t count) {
        enter(device);
        HIP_CHECK(hipMemcpyPeerAsync(to, to_device, from, from_device, count * sizeof(T), stream));
        copies++;
    }
    // Launches a kernel with a thread for each of `count` values.
    template <class... P, class... A> void launch(void (*kernel)(P...), size_t count, A... arguments) {
        enter(device);
        kernel<<<dim3((count + 127) / 128), dim3(128), 0, stream>>>(static_cast<P>(arguments)...);
        HIP_CHECK(hipGetLastError());
    }
};

__device__ inline int thread() { return threadIdx.x + blockIdx.x * blockDim.x; }

} // namespace pair
