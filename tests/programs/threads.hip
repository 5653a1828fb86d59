// Host threads that use the device at the same time: each with its own stream, memory, last error and null-stream launches.
#include <atomic>
#include <mutex>
#include <thread>

#include "check.h"

extern "C" __global__ void axpy_mod(unsigned* y, const unsigned* x, unsigned a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = (y[i] + a * x[i]) % 1000003u;
}

static std::mutex report; // check:: counts are not atomic

static void work(unsigned id, bool own_stream, int rounds) {
    const unsigned n = 1000;
    check::Rng rng(100 + id);
    hipStream_t stream = nullptr;
    HIP_CHECK(hipSetDevice(0));
    if (own_stream) HIP_CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    std::vector<unsigned> x(n), y(n);
    for (unsigned i = 0; i < n; i++) x[i] = rng.below(1000), y[i] = rng.below(1000);
    unsigned *dx = nullptr, *dy = nullptr;
    HIP_CHECK(hipMalloc(reinterpret_cast<void**>(&dx), n * sizeof(unsigned)));
    HIP_CHECK(hipMalloc(reinterpret_cast<void**>(&dy), n * sizeof(unsigned)));
    HIP_CHECK(hipMemcpyAsync(dx, x.data(), n * sizeof(unsigned), hipMemcpyHostToDevice, stream));
    HIP_CHECK(hipMemcpyAsync(dy, y.data(), n * sizeof(unsigned), hipMemcpyHostToDevice, stream));
    for (int round = 0; round < rounds; round++) {
        unsigned a = id * 31 + static_cast<unsigned>(round);
        axpy_mod<<<(n + 127) / 128, 128, 0, stream>>>(dy, dx, a, n);
        HIP_CHECK(hipGetLastError());
        for (unsigned i = 0; i < n; i++) y[i] = (y[i] + a * x[i]) % 1000003u;
        if (round % 5 == 4) {
            std::vector<unsigned> got(n);
            HIP_CHECK(hipMemcpyAsync(got.data(), dy, n * sizeof(unsigned), hipMemcpyDeviceToHost, stream));
            HIP_CHECK(hipStreamSynchronize(stream));
            std::lock_guard<std::mutex> lock(report);
            check::equal("thread", got, y);
        }
    }
    HIP_CHECK(hipFree(dx));
    HIP_CHECK(hipFree(dy));
    if (own_stream) HIP_CHECK(hipStreamDestroy(stream));
}

// One thread's error is not another's.
static void last_errors() {
    std::atomic<int> step{0};
    hipError_t seen = hipErrorUnknown, own = hipSuccess;
    std::thread maker([&] {
        (void)hipMalloc(static_cast<void**>(nullptr), 1);
        step = 1;
        while (step != 2) std::this_thread::yield();
        own = hipGetLastError();
    });
    std::thread watcher([&] {
        while (step != 1) std::this_thread::yield();
        seen = hipGetLastError();
        step = 2;
    });
    maker.join();
    watcher.join();
    EXPECT(seen == hipSuccess);
    EXPECT(own == hipErrorInvalidValue);
    EXPECT(hipGetLastError() == hipSuccess);
}

int main() {
    check::begin("threads");
    std::vector<std::thread> threads;
    for (unsigned id = 0; id < 2; id++) threads.emplace_back(work, id, true, 20);
    for (std::thread& t : threads) t.join();
    threads.clear();
    for (unsigned id = 2; id < 6; id++) threads.emplace_back(work, id, id % 2 == 0, 10);
    for (std::thread& t : threads) t.join();
    last_errors();
    return check::finish();
}
