// printf in kernels: every conversion as C's, all lanes, many blocks, more than any buffer holds, streams and graphs; it is printed before the
// synchronization returns, in the order in which each thread has printed it, between what the program prints itself.
#include "check.h"

#include <unistd.h>

#include <functional>
#include <map>

__global__ void conversions(int* returned) {
    int at = 0;
    returned[at++] = printf("plain\n");
    returned[at++] = printf("%d %5d|%-5d|%05d %+d %i 100%%\n", -7, 42, 42, 42, 42, 1 << 30);
    returned[at++] = printf("%u %x %#X %o %hhd %hd\n", 4000000000u, 255, 255, 8, 300, 70000);
    returned[at++] = printf("%ld %lld %lu %zu %llx\n", -5000000000l, -1ll, 1ul << 63, sizeof(int), 0xfeedull << 40);
    returned[at++] = printf("%f %.2f %10.3e|%g %G %a\n", 1.5, -0.125, 12345.678, 1e-7f, 1e20, 1.0);
    // AMD's runtime finds no argument behind a string that it fills up or cuts off.
    returned[at++] = printf("%c%c %s, %s, %8s|", 'o', 'k', "string", "", "right");
    returned[at++] = printf("%-8s|", "left");
    returned[at++] = printf("%.3s|\n", "cut off");
    returned[at++] = printf("%p %*d|%-*d|%.*f\n", reinterpret_cast<void*>(0x1234), 6, 1, 6, 2, 1, 0.25);
    returned[at++] = printf("%s\n", "a string that has more bytes than one packet of a call to the host can hold, so that it comes in several of them");
    returned[at++] = printf("");
}

__global__ void each(const char* name, int rounds) {
    int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    for (int round = 0; round < rounds; round++) {
        // Lanes part, so that they print in different calls.
        if (thread % 3 == round % 3) printf("%s %d: round %d, a third\n", name, thread, round);
        else printf("%s %d: round %d\n", name, thread, round);
    }
}

// What is printed on standard output while `run` runs.
static std::string captured(const std::function<void()>& run) {
    std::fflush(stdout);
    FILE* file = std::tmpfile();
    int own = dup(1);
    if (file == nullptr || own < 0 || dup2(fileno(file), 1) < 0) {
        check::fail("there is no file for what is printed");
        return {};
    }
    run();
    std::fflush(stdout);
    dup2(own, 1);
    close(own);
    std::string text;
    std::rewind(file);
    char bytes[65536];
    for (size_t got; (got = std::fread(bytes, 1, sizeof bytes, file)) > 0;) text.append(bytes, got);
    std::fclose(file);
    return text;
}

static std::string line(const char* format, ...) {
    char bytes[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(bytes, sizeof bytes, format, arguments);
    va_end(arguments);
    return bytes;
}

// Checks that each thread has printed its rounds in order, and nothing else was printed.
static void check_each(const std::string& text, const std::string& name, int threads, int rounds) {
    std::map<int, int> next;
    size_t lines = 0;
    for (size_t at = 0; at < text.size(); lines++) {
        size_t end = text.find('\n', at);
        std::string got = text.substr(at, end - at);
        at = end == std::string::npos ? text.size() : end + 1;
        int thread = -1, round = -1;
        if (std::sscanf(got.c_str() + name.size(), " %d: round %d", &thread, &round) != 2 || next[thread]++ != round) {
            check::fail("%s: unexpected line %zu: %s", name.c_str(), lines, got.c_str());
            return;
        }
        bool third = got.find(", a third") != std::string::npos;
        EXPECT(third == (thread % 3 == round % 3));
    }
    EXPECT(lines == static_cast<size_t>(threads) * rounds);
    EXPECT(next.size() == static_cast<size_t>(threads));
}

int main() {
    check::begin("device_printf");
    int* returned = nullptr;
    HIP_CHECK(hipMalloc(&returned, 64));
    const std::string wanted[] = {
        "plain\n",
        line("%d %5d|%-5d|%05d %+d %i 100%%\n", -7, 42, 42, 42, 42, 1 << 30),
        "4000000000 ff 0XFF 10 44 4464\n",
        line("%ld %lld %lu %zu %llx\n", -5000000000l, -1ll, 1ul << 63, sizeof(int), 0xfeedull << 40),
        line("%f %.2f %10.3e|%g %G %a\n", 1.5, -0.125, 12345.678, 1e-7f, 1e20, 1.0),
        "ok string, ,    right|",
        "left    |",
        "cut|\n",
        line("%p %*d|%-*d|%.*f\n", reinterpret_cast<void*>(0x1234), 6, 1, 6, 2, 1, 0.25),
        "a string that has more bytes than one packet of a call to the host can hold, so that it comes in several of them\n",
        "",
    };
    std::string all;
    for (const std::string& part : wanted) all += part;
    // Between what the program prints itself, as both go through the same C library.
    std::string text = captured([&] {
        std::printf("before\n");
        conversions<<<1, 1>>>(returned);
        HIP_CHECK(hipDeviceSynchronize());
        std::printf("behind\n");
    });
    if (text != "before\n" + all + "behind\n") check::fail("printed:\n%s\ninstead of:\nbefore\n%sbehind", text.c_str(), all.c_str());
    check::values_compared++;
    int lengths[11];
    HIP_CHECK(hipMemcpy(lengths, returned, sizeof lengths, hipMemcpyDeviceToHost));
    for (int at = 0; at < 11; at++) EXPECT(lengths[at] == static_cast<int>(wanted[at].size()));

    char* name = nullptr;
    HIP_CHECK(hipMalloc(&name, 16));
    HIP_CHECK(hipMemcpy(name, "thread", 7, hipMemcpyHostToDevice));
    // Each kind of wait: for the device, a stream, an event, a copy.
    hipStream_t stream = nullptr;
    hipEvent_t event = nullptr;
    HIP_CHECK(hipStreamCreate(&stream));
    HIP_CHECK(hipEventCreate(&event));
    const std::function<void()> waits[] = {
        [&] { HIP_CHECK(hipDeviceSynchronize()); },
        [&] { HIP_CHECK(hipStreamSynchronize(stream)); },
        [&] { HIP_CHECK(hipEventSynchronize(event)); },
        [&] { HIP_CHECK(hipMemcpy(lengths, returned, sizeof lengths, hipMemcpyDeviceToHost)); },
        [&] { while (hipStreamQuery(stream) == hipErrorNotReady) {} },
        [&] { while (hipEventQuery(event) == hipErrorNotReady) {} },
    };
    for (const auto& wait : waits) {
        text = captured([&] {
            each<<<3, 70, 0, stream>>>(name, 2);
            HIP_CHECK(hipEventRecord(event, stream));
            wait();
        });
        check_each(text, "thread", 210, 2);
    }
    // About 3 MB.
    text = captured([&] {
        each<<<40, 256>>>(name, 12);
        HIP_CHECK(hipDeviceSynchronize());
    });
    check_each(text, "thread", 40 * 256, 12);
    // A graph, launched twice.
    hipGraph_t graph = nullptr;
    hipGraphExec_t exec = nullptr;
    HIP_CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    each<<<1, 64, 0, stream>>>(name, 1);
    HIP_CHECK(hipStreamEndCapture(stream, &graph));
    HIP_CHECK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    for (int launch = 0; launch < 2; launch++) {
        text = captured([&] {
            HIP_CHECK(hipGraphLaunch(exec, stream));
            HIP_CHECK(hipStreamSynchronize(stream));
        });
        check_each(text, "thread", 64, 1);
    }
    HIP_CHECK(hipGraphExecDestroy(exec));
    HIP_CHECK(hipGraphDestroy(graph));
    HIP_CHECK(hipEventDestroy(event));
    HIP_CHECK(hipStreamDestroy(stream));
    HIP_CHECK(hipFree(name));
    HIP_CHECK(hipFree(returned));
    return check::finish();
}
