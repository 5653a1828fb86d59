// The order of work on streams, as a table: each pair of streams, with and without an event between them, each kind of work in both places,
// called directly or launched as a graph. One rule says what is ordered: work of one stream is; work of the null stream and of a blocking
// stream is, both ways (the per-thread stream is a blocking one); everything else only by an event.
//
// The first work stands behind a kernel that takes a while. Where the order holds, the second work sees what the first did; one that does
// not wait sees old bytes. Where the rule says nothing, nothing is looked at.
//
// Without an argument a part of the table is done, with "all" the whole.
#include <functional>

#include "check.h"
#include "runtime.h"

static const size_t kSlice = 256;                 // bytes that one work writes
static const int kSlices = 16;                    // places for them
static const size_t kBytes = kSlice * kSlices;    // one row

// Takes a while, as long at every level of optimization, and changes nothing.
extern "C" __global__ void spin() {
    asm volatile("s_mov_b32 s40, 20000\n1:\ts_sub_u32 s40, s40, 1\n\ts_cmp_lg_u32 s40, 0\n\ts_cbranch_scc1 1b" : : : "s40", "scc");
}

extern "C" __global__ void set_bytes(unsigned char* out, unsigned char value, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = value;
}

extern "C" __global__ void copy_bytes(unsigned char* out, const unsigned char* in, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
}

// ---- memory ------------------------------------------------------------------------------------------------------------

static unsigned char* cells;                      // what the first and the second work meet in
static unsigned char* device_source[2];           // full of the new value of the first work, of the second
static unsigned char* pinned_source[2];
static unsigned char* pageable_source[2];
static unsigned char* pinned_cells;               // the same on the host
static const int kSinks = 16;
static unsigned char* device_sink[kSinks];
static unsigned char* pinned_sink[kSinks];
static unsigned char* pageable_sink[kSinks];

enum : unsigned char { kOld = 1, kFirst = 2, kSecond = 3 };

static void pinned(unsigned char** memory) { HIP_CHECK(hipHostMalloc(reinterpret_cast<void**>(memory), kBytes)); }
static void device(unsigned char** memory) { HIP_CHECK(hipMalloc(reinterpret_cast<void**>(memory), kBytes)); }

static void make_memory() {
    device(&cells);
    pinned(&pinned_cells);
    for (int i = 0; i < 2; i++) {
        unsigned char value = i == 0 ? kFirst : kSecond;
        device(&device_source[i]);
        pinned(&pinned_source[i]);
        pageable_source[i] = static_cast<unsigned char*>(std::malloc(kBytes));
        HIP_CHECK(hipMemset(device_source[i], value, kBytes));
        std::memset(pinned_source[i], value, kBytes);
        std::memset(pageable_source[i], value, kBytes);
    }
    for (int i = 0; i < kSinks; i++) {
        device(&device_sink[i]);
        pinned(&pinned_sink[i]);
        pageable_sink[i] = static_cast<unsigned char*>(std::malloc(kBytes));
    }
}

// ---- work --------------------------------------------------------------------------------------------------------------

// Writes `size` bytes at `to`, which are cells: those of the first work (who = 0) or of the second (1).
struct Write {
    const char* name;
    bool is_recordable; // can be captured
    bool is_any_stream; // else the null stream's alone
    std::function<void(unsigned char* to, size_t size, int who, hipStream_t stream)> run;
};

static unsigned char value_of(int who) { return who == 0 ? kFirst : kSecond; }

static const std::vector<Write>& writes() {
    static const std::vector<Write> all = {
        {"kernel", true, true,
         [](unsigned char* to, size_t size, int who, hipStream_t stream) {
             set_bytes<<<static_cast<unsigned>((size + 255) / 256), 256, 0, stream>>>(to, value_of(who), static_cast<unsigned>(size));
             HIP_CHECK(hipGetLastError());
         }},
        {"pinned to device", true, true,
         [](unsigned char* to, size_t size, int who, hipStream_t stream) {
             HIP_CHECK(hipMemcpyAsync(to, pinned_source[who], size, hipMemcpyHostToDevice, stream));
         }},
        {"pageable to device", true, true,
         [](unsigned char* to, size_t size, int who, hipStream_t stream) {
             HIP_CHECK(hipMemcpyAsync(to, pageable_source[who], size, hipMemcpyHostToDevice, stream));
         }},
        {"rows to device", true, true,
         [](unsigned char* to, size_t size, int who, hipStream_t stream) {
             HIP_CHECK(hipMemcpy2DAsync(to, 64, pinned_source[who], 64, 64, size / 64, hipMemcpyHostToDevice, stream));
         }},
        {"device to device", true, true,
         [](unsigned char* to, size_t size, int who, hipStream_t stream) {
             HIP_CHECK(hipMemcpyAsync(to, device_source[who], size, hipMemcpyDeviceToDevice, stream));
         }},
        {"rows of the device", true, true,
         [](unsigned char* to, size_t size, int who, hipStream_t stream) {
             HIP_CHECK(hipMemcpy2DAsync(to, 64, device_source[who], 64, 64, size / 64, hipMemcpyDeviceToDevice, stream));
         }},
        {"fill", true, true,
         [](unsigned char* to, size_t size, int who, hipStream_t stream) { HIP_CHECK(hipMemsetAsync(to, value_of(who), size, stream)); }},
        {"fill of words", true, true,
         [](unsigned char* to, size_t size, int who, hipStream_t stream) {
             HIP_CHECK(hipMemsetD32Async(to, static_cast<int>(0x01010101u * value_of(who)), size / 4, stream));
         }},
        {"fill of rows", true, true,
         [](unsigned char* to, size_t size, int who, hipStream_t stream) { HIP_CHECK(hipMemset2DAsync(to, 64, value_of(who), 64, size / 64, stream)); }},
        {"pool memory to device", false, true,
         [](unsigned char* to, size_t size, int who, hipStream_t stream) {
             void* between = nullptr;
             HIP_CHECK(hipMallocAsync(&between, size, stream));
             HIP_CHECK(hipMemsetAsync(between, value_of(who), size, stream));
             HIP_CHECK(hipMemcpyAsync(to, between, size, hipMemcpyDeviceToDevice, stream));
             HIP_CHECK(hipFreeAsync(between, stream));
         }},
        // Synchronous.
        {"waited to device", false, true,
         [](unsigned char* to, size_t size, int who, hipStream_t stream) {
             HIP_CHECK(hipMemcpyWithStream(to, pageable_source[who], size, hipMemcpyHostToDevice, stream));
         }},
        {"hipMemcpy to device", false, false,
         [](unsigned char* to, size_t size, int who, hipStream_t) { HIP_CHECK(hipMemcpy(to, pageable_source[who], size, hipMemcpyHostToDevice)); }},
        {"hipMemcpy of the device", false, false,
         [](unsigned char* to, size_t size, int who, hipStream_t) { HIP_CHECK(hipMemcpy(to, device_source[who], size, hipMemcpyDeviceToDevice)); }},
        {"hipMemset", false, false, [](unsigned char* to, size_t size, int who, hipStream_t) { HIP_CHECK(hipMemset(to, value_of(who), size)); }},
        {"hipMemcpy2D to device", false, false,
         [](unsigned char* to, size_t size, int who, hipStream_t) {
             HIP_CHECK(hipMemcpy2D(to, 64, pinned_source[who], 64, 64, size / 64, hipMemcpyHostToDevice));
         }},
    };
    return all;
}

// Reads all cells into sink number `sink`.
struct Read {
    const char* name;
    bool is_recordable, is_any_stream;
    unsigned char** sinks; // device_sink, pinned_sink or pageable_sink
    std::function<void(int sink, hipStream_t stream)> run;
};

static const std::vector<Read>& reads() {
    static const std::vector<Read> all = {
        {"kernel", true, true, device_sink,
         [](int sink, hipStream_t stream) {
             copy_bytes<<<kBytes / 256, 256, 0, stream>>>(device_sink[sink], cells, kBytes);
             HIP_CHECK(hipGetLastError());
         }},
        {"device to pinned", true, true, pinned_sink,
         [](int sink, hipStream_t stream) { HIP_CHECK(hipMemcpyAsync(pinned_sink[sink], cells, kBytes, hipMemcpyDeviceToHost, stream)); }},
        {"device to pageable", true, true, pageable_sink,
         [](int sink, hipStream_t stream) { HIP_CHECK(hipMemcpyAsync(pageable_sink[sink], cells, kBytes, hipMemcpyDeviceToHost, stream)); }},
        {"rows to pinned", true, true, pinned_sink,
         [](int sink, hipStream_t stream) {
             HIP_CHECK(hipMemcpy2DAsync(pinned_sink[sink], 64, cells, 64, 64, kBytes / 64, hipMemcpyDeviceToHost, stream));
         }},
        {"rows to pageable", true, true, pageable_sink,
         [](int sink, hipStream_t stream) {
             HIP_CHECK(hipMemcpy2DAsync(pageable_sink[sink], 64, cells, 64, 64, kBytes / 64, hipMemcpyDeviceToHost, stream));
         }},
        {"device to device", true, true, device_sink,
         [](int sink, hipStream_t stream) { HIP_CHECK(hipMemcpyAsync(device_sink[sink], cells, kBytes, hipMemcpyDeviceToDevice, stream)); }},
        {"device to pool memory", false, true, pinned_sink,
         [](int sink, hipStream_t stream) {
             void* between = nullptr;
             HIP_CHECK(hipMallocAsync(&between, kBytes, stream));
             HIP_CHECK(hipMemcpyAsync(between, cells, kBytes, hipMemcpyDeviceToDevice, stream));
             HIP_CHECK(hipMemcpyAsync(pinned_sink[sink], between, kBytes, hipMemcpyDeviceToHost, stream));
             HIP_CHECK(hipFreeAsync(between, stream));
         }},
        {"hipMemcpyDtoHAsync", false, true, pinned_sink,
         [](int sink, hipStream_t stream) { HIP_CHECK(hipMemcpyDtoHAsync(pinned_sink[sink], cells, kBytes, stream)); }},
        // Synchronous.
        {"waited to pageable", false, true, pageable_sink,
         [](int sink, hipStream_t stream) { HIP_CHECK(hipMemcpyWithStream(pageable_sink[sink], cells, kBytes, hipMemcpyDeviceToHost, stream)); }},
        {"hipMemcpy to pageable", false, false, pageable_sink,
         [](int sink, hipStream_t) { HIP_CHECK(hipMemcpy(pageable_sink[sink], cells, kBytes, hipMemcpyDeviceToHost)); }},
        {"hipMemcpy2D to pinned", false, false, pinned_sink,
         [](int sink, hipStream_t) { HIP_CHECK(hipMemcpy2D(pinned_sink[sink], 64, cells, 64, 64, kBytes / 64, hipMemcpyDeviceToHost)); }},
    };
    return all;
}

// ---- streams and the rule ----------------------------------------------------------------------------------------------

struct Stream {
    const char* name;
    hipStream_t stream;
    enum Kind { kNull, kBlocking, kFree } kind;
    int number; // of the stream itself: the null stream has two handles
};

static std::vector<Stream> streams;
static hipStream_t recorder;
static hipEvent_t between;

static void make_streams() {
    hipStream_t blocking, other, unordered, unordered_other;
    HIP_CHECK(hipStreamCreate(&blocking));
    HIP_CHECK(hipStreamCreate(&other));
    HIP_CHECK(hipStreamCreateWithFlags(&unordered, hipStreamNonBlocking));
    HIP_CHECK(hipStreamCreateWithFlags(&unordered_other, hipStreamNonBlocking));
    HIP_CHECK(hipStreamCreateWithFlags(&recorder, hipStreamNonBlocking));
    HIP_CHECK(hipEventCreateWithFlags(&between, hipEventDisableTiming));
    streams = {{"null", nullptr, Stream::kNull, 0},
               {"legacy", hipStreamLegacy, Stream::kNull, 0},
               {"per-thread", hipStreamPerThread, Stream::kBlocking, 1},
               {"blocking", blocking, Stream::kBlocking, 2},
               {"another blocking", other, Stream::kBlocking, 3},
               {"non-blocking", unordered, Stream::kFree, 4},
               {"another non-blocking", unordered_other, Stream::kFree, 5}};
}

// The rule.
static bool are_ordered(const Stream& first, const Stream& second, bool has_event) {
    if (has_event || first.number == second.number) return true;
    bool has_null = first.kind == Stream::kNull || second.kind == Stream::kNull;
    return has_null && first.kind != Stream::kFree && second.kind != Stream::kFree;
}

// In AMD's runtime 6.4.3 the value of a graph's fill is where later calls put theirs.
static bool is_wrong(const Write& write, bool is_graph) { return check::amds_release() == 6 && is_graph && std::string(write.name).rfind("fill", 0) == 0; }

// To wait for an event of hipStreamLegacy crashes AMD's runtime.
static bool is_crash(const Stream& first, bool has_event) { return check::amds_release() > 0 && has_event && first.stream == hipStreamLegacy; }

// ---- the table ---------------------------------------------------------------------------------------------------------

using Work = std::function<void(hipStream_t)>;

static bool does_all = false;
static unsigned long cases = 0, wrong = 0;
static check::Rng chooser(20);

// A graph of what `work` puts on a stream.
static hipGraphExec_t recorded(const Work& work) {
    hipGraph_t graph;
    hipGraphExec_t ready;
    HIP_CHECK(hipStreamBeginCapture(recorder, hipStreamCaptureModeThreadLocal));
    work(recorder);
    HIP_CHECK(hipStreamEndCapture(recorder, &graph));
    HIP_CHECK(hipGraphInstantiate(&ready, graph, nullptr, nullptr, 0));
    HIP_CHECK(hipGraphDestroy(graph));
    return ready;
}

static Work as_graph(const Work& work) {
    hipGraphExec_t ready = recorded(work); // kept: there are few
    return [ready](hipStream_t stream) { HIP_CHECK(hipGraphLaunch(ready, stream)); };
}

static std::string text(const Stream& first, const std::string& a, const Stream& second, const std::string& b, bool has_event) {
    return a + " on " + first.name + ", " + (has_event ? "event, " : "") + b + " on " + second.name;
}

static void reset() {
    HIP_CHECK(hipMemset(cells, kOld, kBytes));
    std::memset(pinned_cells, kOld, kBytes);
    HIP_CHECK(hipDeviceSynchronize());
}

// The bytes of a sink, when all work is done.
static std::vector<unsigned char> bytes_of(unsigned char* const* sinks, int sink) {
    std::vector<unsigned char> bytes(kBytes);
    if (sinks == device_sink) HIP_CHECK(hipMemcpy(bytes.data(), device_sink[sink], kBytes, hipMemcpyDeviceToHost));
    else std::memcpy(bytes.data(), sinks[sink], kBytes);
    return bytes;
}

static void expect(const std::vector<unsigned char>& bytes, size_t from, size_t size, unsigned char wanted, const std::string& what) {
    cases++;
    for (size_t i = from; i < from + size; i++)
        if (bytes[i] != wanted) {
            wrong++;
            return check::fail("%s: %s: byte %zu is %d instead of %d", what.c_str(),
                               bytes[i] == kOld ? "the later work did not wait" : "out of order", i, bytes[i], wanted);
        }
}

// Runs first behind a delay, then second; both are done afterwards.
static void run(const Stream& first, const Work& a, const Stream& second, const Work& b, bool has_event) {
    spin<<<1, 64, 0, first.stream>>>();
    HIP_CHECK(hipGetLastError());
    a(first.stream);
    if (has_event) {
        HIP_CHECK(hipEventRecord(between, first.stream));
        HIP_CHECK(hipStreamWaitEvent(second.stream, between, 0));
    }
    b(second.stream);
    HIP_CHECK(hipDeviceSynchronize());
}

static bool is_chosen() { return does_all || chooser.below(10) == 0; }

int main(int argc, char** argv) {
    check::begin("stream_order");
    does_all = argc > 1 && std::string(argv[1]) == "all";
    make_memory();
    make_streams();

    // What writes or reads in one call each, the asynchronous ones together: they are the first work, each in a slice of its own.
    std::vector<const Write*> first_writes;
    for (const Write& write : writes())
        if (write.is_recordable) first_writes.push_back(&write);
    auto write_all = [&](bool is_graph) {
        return [&, is_graph](hipStream_t stream) {
            for (size_t i = 0; i < first_writes.size(); i++)
                if (!is_wrong(*first_writes[i], is_graph)) first_writes[i]->run(cells + i * kSlice, kSlice, 0, stream);
        };
    };
    std::vector<const Read*> first_reads;
    for (const Read& read : reads())
        if (read.is_recordable) first_reads.push_back(&read);
    Work read_all = [&](hipStream_t stream) {
        for (size_t i = 0; i < first_reads.size(); i++) first_reads[i]->run(static_cast<int>(i), stream);
    };
    const Work all_writes[] = {write_all(false), as_graph(write_all(true))}, all_reads[] = {read_all, as_graph(read_all)};

    // The second work: the sinks behind those of the first.
    struct Second {
        std::string name;
        const Read* read;
        const Write* write;
        Work work;
    };
    std::vector<Second> seconds;
    const int sink = kSinks - 1;
    for (const Read& read : reads()) {
        Work work = [&read](hipStream_t stream) { read.run(sink, stream); };
        seconds.push_back({read.name, &read, nullptr, work});
        if (read.is_recordable) seconds.push_back({std::string("graph of ") + read.name, &read, nullptr, as_graph(work)});
    }
    for (const Write& write : writes()) {
        Work work = [&write](hipStream_t stream) { write.run(cells, kBytes, 1, stream); };
        seconds.push_back({write.name, nullptr, &write, work});
        if (write.is_recordable && !is_wrong(write, true)) seconds.push_back({std::string("graph of ") + write.name, nullptr, &write, as_graph(work)});
    }

    for (const Stream& first : streams)
        for (const Stream& second : streams)
            for (bool has_event : {false, true}) {
                if (!are_ordered(first, second, has_event) || is_crash(first, has_event)) continue;
                for (const Second& later : seconds) {
                    bool is_any_stream = later.read ? later.read->is_any_stream : later.write->is_any_stream;
                    if (!is_any_stream && second.kind != Stream::kNull) continue;
                    for (bool is_graph : {false, true}) {
                        const char* how = is_graph ? "graph of " : "";
                        if (!is_chosen()) continue;
                        if (later.read) {
                            reset();
                            run(first, all_writes[is_graph], second, later.work, has_event);
                            std::vector<unsigned char> bytes = bytes_of(later.read->sinks, sink);
                            for (size_t i = 0; i < first_writes.size(); i++) {
                                if (is_wrong(*first_writes[i], is_graph)) continue;
                                expect(bytes, i * kSlice, kSlice, kFirst,
                                       text(first, how + std::string(first_writes[i]->name), second, later.name, has_event));
                            }
                            continue;
                        }
                        // What is written later is not read, and stays.
                        reset();
                        run(first, all_reads[is_graph], second, later.work, has_event);
                        for (size_t i = 0; i < first_reads.size(); i++)
                            expect(bytes_of(first_reads[i]->sinks, static_cast<int>(i)), 0, kBytes, kOld,
                                   text(first, how + std::string(first_reads[i]->name), second, later.name, has_event));
                        reset();
                        run(first, all_writes[is_graph], second, later.work, has_event);
                        std::vector<unsigned char> bytes(kBytes);
                        HIP_CHECK(hipMemcpy(bytes.data(), cells, kBytes, hipMemcpyDeviceToHost));
                        expect(bytes, 0, kBytes, kSecond, text(first, how + std::string("writes"), second, later.name, has_event));
                    }
                }
            }

    // Functions of the program, which meet the rest in memory of the host.
    struct HostWork {
        const char* name;
        Work work;
    };
    const HostWork before[] = {
        {"function", [](hipStream_t stream) {
             HIP_CHECK(hipLaunchHostFunc(stream, [](void*) { std::memset(pinned_cells, kFirst, kBytes); }, nullptr));
         }},
        {"device to pinned", [](hipStream_t stream) {
             HIP_CHECK(hipMemcpyAsync(pinned_cells, device_source[0], kBytes, hipMemcpyDeviceToHost, stream));
         }},
    };
    const HostWork behind[] = {
        {"function", [](hipStream_t stream) {
             HIP_CHECK(hipLaunchHostFunc(stream, [](void*) { std::memcpy(pageable_sink[sink], pinned_cells, kBytes); }, nullptr));
         }},
        {"pinned to device", [](hipStream_t stream) {
             HIP_CHECK(hipMemcpyAsync(device_sink[sink], pinned_cells, kBytes, hipMemcpyHostToDevice, stream));
             HIP_CHECK(hipMemcpyAsync(pageable_sink[sink], device_sink[sink], kBytes, hipMemcpyDeviceToHost, stream));
         }},
    };
    for (const Stream& first : streams)
        for (const Stream& second : streams)
            for (bool has_event : {false, true})
                for (const HostWork& a : before)
                    for (const HostWork& b : behind) {
                        if (!are_ordered(first, second, has_event) || is_crash(first, has_event) || !is_chosen()) continue;
                        reset();
                        run(first, a.work, second, b.work, has_event);
                        expect(bytes_of(pageable_sink, sink), 0, kBytes, kFirst, text(first, a.name, second, b.name, has_event));
                    }
    check::values_compared += static_cast<long>(cases);
    if (wrong) std::fprintf(stderr, "stream_order: %lu of %lu cases are wrong\n", wrong, cases);
    return check::finish();
}
