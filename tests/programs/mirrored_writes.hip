// Everything that writes memory which host and device share, as a table: (operation) x (pinned, mapped, registered, managed memory) x (by the
// host's pointer, by the device's) x (a kernel has known the memory before, or not) x (the synchronous call; the asynchronous one and each
// way to wait) x (null stream, blocking stream). The host must then see what was written, and its own bytes around it.
#include <functional>

#include "check.h"
#include "runtime.h"

extern "C" __global__ void write_words(unsigned* words, unsigned value) { words[threadIdx.x] = value; }

// Keeps a stream busy, so that what is not waited for is not there yet.
extern "C" __global__ void delay_stream(volatile unsigned* sink, int rounds) {
    for (int i = 0; i < rounds; i++) *sink = *sink + 1;
}

static const unsigned kValue = 0x5a5a5a5a;
static const size_t kWords = 256, kFirst = 16, kPitchWords = 16, kWidthWords = 8, kRows = 4;

struct Operation {
    const char* name;
    size_t words; // that are written; 0: rows
    std::function<hipError_t(unsigned*, hipStream_t)> enqueue; // with stream kSynchronous: the synchronous function, if there is one
    bool has_synchronous = true, has_asynchronous = true, fills_rows = false;
};

static hipStream_t kSynchronous = reinterpret_cast<hipStream_t>(-1l);

static hipError_t launch_graph(hipStream_t stream, const std::function<void(hipGraph_t)>& add) {
    hipGraph_t graph;
    hipGraphExec_t exec;
    HIP_CHECK(hipGraphCreate(&graph, 0));
    add(graph);
    HIP_CHECK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    hipError_t launched = hipGraphLaunch(exec, stream);
    HIP_CHECK(hipGraphExecDestroy(exec));
    HIP_CHECK(hipGraphDestroy(graph));
    return launched;
}

int main() {
    check::begin("mirrored_writes");
    const size_t pitch = kPitchWords * 4, width = kWidthWords * 4, words = 64, bytes = words * 4;
    std::vector<unsigned> pageable(kWords, kValue);
    unsigned* pinned = nullptr;
    HIP_CHECK(hipHostMalloc(reinterpret_cast<void**>(&pinned), kWords * 4, 0));
    std::fill(pinned, pinned + kWords, kValue);
    DeviceArray<unsigned> device(pageable), sink(1);
    sink.fill_bytes(0);
    auto is_sync = [](hipStream_t s) { return s == kSynchronous; };
    auto d = [](unsigned* p) { return reinterpret_cast<hipDeviceptr_t>(p); };

    std::vector<Operation> operations = {
        {"hipMemset", words, [&](unsigned* p, hipStream_t s) { return is_sync(s) ? hipMemset(p, 0x5a, bytes) : hipMemsetAsync(p, 0x5a, bytes, s); }},
        {"hipMemsetD8", words, [&](unsigned* p, hipStream_t s) { return is_sync(s) ? hipMemsetD8(d(p), 0x5a, bytes) : hipMemsetD8Async(d(p), 0x5a, bytes, s); }},
        {"hipMemsetD16", words, [&](unsigned* p, hipStream_t s) { return is_sync(s) ? hipMemsetD16(d(p), 0x5a5a, bytes / 2) : hipMemsetD16Async(d(p), 0x5a5a, bytes / 2, s); }},
        {"hipMemsetD32", words, [&](unsigned* p, hipStream_t s) { return is_sync(s) ? hipMemsetD32(d(p), kValue, words) : hipMemsetD32Async(d(p), kValue, words, s); }},
        {"hipMemset2D", 0, [&](unsigned* p, hipStream_t s) { return is_sync(s) ? hipMemset2D(p, pitch, 0x5a, width, kRows) : hipMemset2DAsync(p, pitch, 0x5a, width, kRows, s); }, true, true, true},
        {"hipMemset3D", 0,
         [&](unsigned* p, hipStream_t s) {
             hipPitchedPtr to = make_hipPitchedPtr(p, pitch, width, kRows / 2);
             hipExtent extent = make_hipExtent(width, kRows / 2, 2);
             return is_sync(s) ? hipMemset3D(to, 0x5a, extent) : hipMemset3DAsync(to, 0x5a, extent, s);
         },
         true, true, true},
    };
    struct Source {
        const char* name;
        const unsigned* words;
        hipMemcpyKind kind;
    };
    for (Source source : {Source{"from pageable memory", pageable.data(), hipMemcpyHostToDevice}, Source{"from pinned memory", pinned, hipMemcpyHostToDevice},
                          Source{"from device memory", device.get(), hipMemcpyDeviceToDevice}, Source{"from device memory, as to the host", device.get(), hipMemcpyDeviceToHost},
                          Source{"from device memory, default", device.get(), hipMemcpyDefault}, Source{"from pinned memory, default", pinned, hipMemcpyDefault}}) {
        const unsigned* from = source.words;
        hipMemcpyKind kind = source.kind;
        operations.push_back({source.name, words, [=](unsigned* p, hipStream_t s) { return is_sync(s) ? hipMemcpy(p, from, bytes, kind) : hipMemcpyAsync(p, from, bytes, kind, s); }});
        operations.push_back({source.name, 0, [=](unsigned* p, hipStream_t s) {
                                  return is_sync(s) ? hipMemcpy2D(p, pitch, from, width, width, kRows, kind) : hipMemcpy2DAsync(p, pitch, from, width, width, kRows, kind, s);
                              }});
    }
    operations.push_back({"hipMemcpyPeer", words, [&](unsigned* p, hipStream_t s) { return is_sync(s) ? hipMemcpyPeer(p, 0, device.get(), 0, bytes) : hipMemcpyPeerAsync(p, 0, device.get(), 0, bytes, s); }});
    operations.push_back({"hipMemcpyDtoD", words, [&](unsigned* p, hipStream_t s) { return is_sync(s) ? hipMemcpyDtoD(d(p), d(device.get()), bytes) : hipMemcpyDtoDAsync(d(p), d(device.get()), bytes, s); }});
    operations.push_back({"hipMemcpyWithStream", words, [&](unsigned* p, hipStream_t) { return hipMemcpyWithStream(p, device.get(), bytes, hipMemcpyDeviceToDevice, nullptr); }, true, false});
    operations.push_back({"a kernel", words,
                          [&](unsigned* p, hipStream_t s) {
                              write_words<<<1, words, 0, s>>>(p, kValue);
                              return hipGetLastError();
                          },
                          false});
    operations.push_back({"hipStreamWriteValue32", 1, [&](unsigned* p, hipStream_t s) { return hipStreamWriteValue32(s, p, kValue, 0); }, false});
    operations.push_back({"hipStreamWriteValue64", 2, [&](unsigned* p, hipStream_t s) { return hipStreamWriteValue64(s, p, 0x5a5a5a5a5a5a5a5aull, 0); }, false});
    operations.push_back({"a memset node", words,
                          [&](unsigned* p, hipStream_t s) {
                              return launch_graph(s, [&](hipGraph_t graph) {
                                  hipGraphNode_t node;
                                  hipMemsetParams params = {};
                                  params.dst = p, params.elementSize = 4, params.height = 1, params.value = kValue, params.width = words;
                                  HIP_CHECK(hipGraphAddMemsetNode(&node, graph, nullptr, 0, &params));
                              });
                          },
                          false});
    for (const unsigned* from : {static_cast<const unsigned*>(pageable.data()), static_cast<const unsigned*>(device.get())})
        operations.push_back({"a memcpy node", words,
                              [=](unsigned* p, hipStream_t s) {
                                  return launch_graph(s, [=](hipGraph_t graph) {
                                      hipGraphNode_t node;
                                      HIP_CHECK(hipGraphAddMemcpyNode1D(&node, graph, nullptr, 0, p, from, bytes, hipMemcpyDefault));
                                  });
                              },
                              false});

    hipStream_t blocking;
    hipEvent_t event;
    HIP_CHECK(hipStreamCreate(&blocking));
    HIP_CHECK(hipEventCreate(&event));
    struct Wait {
        const char* name;
        std::function<void(hipStream_t)> wait;
    };
    const std::vector<Wait> waits = {
        {"hipStreamSynchronize", [&](hipStream_t s) { HIP_CHECK(hipStreamSynchronize(s)); }},
        {"hipDeviceSynchronize", [&](hipStream_t) { HIP_CHECK(hipDeviceSynchronize()); }},
        {"hipEventSynchronize",
         [&](hipStream_t s) {
             HIP_CHECK(hipEventRecord(event, s));
             HIP_CHECK(hipEventSynchronize(event));
         }},
        {"hipStreamQuery",
         [&](hipStream_t s) {
             hipError_t result;
             while ((result = hipStreamQuery(s)) == hipErrorNotReady) {}
             HIP_CHECK(result);
         }},
        {"hipEventQuery",
         [&](hipStream_t s) {
             HIP_CHECK(hipEventRecord(event, s));
             hipError_t result;
             while ((result = hipEventQuery(event)) == hipErrorNotReady) {}
             HIP_CHECK(result);
         }},
        {"a copy that waits",
         [&](hipStream_t) {
             unsigned word;
             HIP_CHECK(hipMemcpy(&word, sink.get(), sizeof word, hipMemcpyDeviceToHost));
         }},
    };

    enum Kind { Pinned, Mapped, Registered, Managed };
    for (Kind kind : {Pinned, Mapped, Registered, Managed})
        for (bool by_device : {false, true})
            for (bool is_known : {false, true}) {
                unsigned* host = nullptr;
                std::vector<unsigned> own(kWords);
                if (kind == Registered) HIP_CHECK(hipHostRegister(host = own.data(), kWords * 4, 0));
                else if (kind == Managed) HIP_CHECK(hipMallocManaged(reinterpret_cast<void**>(&host), kWords * 4));
                else HIP_CHECK(hipHostMalloc(reinterpret_cast<void**>(&host), kWords * 4, kind == Mapped ? hipHostMallocMapped : hipHostMallocDefault));
                unsigned* base = host;
                if (by_device && kind != Managed) HIP_CHECK(hipHostGetDevicePointer(reinterpret_cast<void**>(&base), host, 0));
                if (is_known) {
                    write_words<<<1, words>>>(base, 1);
                    HIP_CHECK(hipDeviceSynchronize());
                }
                unsigned round = 0;
                for (const Operation& operation : operations) {
                    if (check::amds_release() == 6 && kind != Managed && operation.fills_rows) continue; // it fills one row
                    for (hipStream_t stream : {hipStream_t(nullptr), blocking})
                        for (size_t w = 0; w <= waits.size(); w++) {
                            bool synchronous = w == waits.size();
                            if (synchronous ? !operation.has_synchronous : !operation.has_asynchronous) continue;
                            round++;
                            std::vector<unsigned> want(kWords), got(kWords);
                            for (size_t i = 0; i < kWords; i++) host[i] = want[i] = round * 1000 + static_cast<unsigned>(i);
                            delay_stream<<<1, 1, 0, stream>>>(sink.get(), 200);
                            HIP_CHECK(operation.enqueue(base + kFirst, synchronous ? kSynchronous : stream));
                            if (!synchronous) waits[w].wait(stream);
                            // From device memory to what it takes for device memory, AMD's runtime does not wait.
                            else if (check::amds_release() > 0) HIP_CHECK(hipStreamSynchronize(nullptr));
                            std::copy(host, host + kWords, got.begin());
                            if (operation.words > 0) std::fill(&want[kFirst], &want[kFirst] + operation.words, kValue);
                            else
                                for (size_t row = 0; row < kRows; row++) std::fill(&want[kFirst + row * kPitchWords], &want[kFirst + row * kPitchWords] + kWidthWords, kValue);
                            if (got != want)
                                std::fprintf(stderr, "%s, memory %d, by the %s's pointer, %s, %s, %s stream\n", operation.name, kind, by_device ? "device" : "host",
                                             is_known ? "known" : "not known", synchronous ? "synchronous" : waits[w].name, stream ? "blocking" : "null");
                            check::equal("memory", got, want);
                            if (!synchronous) HIP_CHECK(hipStreamSynchronize(stream));
                        }
                }
                HIP_CHECK(hipDeviceSynchronize());
                if (kind == Registered) HIP_CHECK(hipHostUnregister(host));
                else if (kind == Managed) HIP_CHECK(hipFree(host));
                else HIP_CHECK(hipHostFree(host));
            }
    HIP_CHECK(hipEventDestroy(event));
    HIP_CHECK(hipStreamDestroy(blocking));
    HIP_CHECK(hipHostFree(pinned));
    return check::finish();
}
