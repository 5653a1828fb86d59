// Copies between two devices of which the program looks at nothing but the number of wrong bytes: rows and slices with gaps, both ways, each
// size at its limits, on streams and without; prints how long the last and largest one takes.
//
// direct_copies [MIB]

#include <hip/hip_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                                  \
    do {                                                                                             \
        hipError_t error = (call);                                                                   \
        if (error != hipSuccess) {                                                                   \
            printf("FAIL %s:%d: %s: %s\n", __FILE__, __LINE__, #call, hipGetErrorName(error));       \
            exit(1);                                                                                 \
        }                                                                                            \
    } while (0)

__device__ unsigned char byte_of(size_t at, unsigned seed) {
    return (unsigned char)((at * 2654435761u) >> 11) + seed;
}

__global__ void fill(unsigned char* to, size_t len, unsigned seed) {
    size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x; at < len; at += step) to[at] = byte_of(at, seed);
}

// Every byte is that of the copied box, or, outside of it, what was there before.
__global__ void count_wrong(const unsigned char* found, size_t len, size_t start, size_t pitch, size_t rows,
                            size_t width, size_t height, size_t depth, size_t src_start, size_t src_pitch,
                            size_t src_rows, unsigned seed, unsigned before, unsigned* wrong) {
    size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x; at < len; at += step) {
        unsigned char expected = byte_of(at, before);
        if (at >= start) {
            size_t row = (at - start) / pitch, x = (at - start) % pitch;
            size_t z = row / rows, y = row % rows;
            if (x < width && y < height && z < depth)
                expected = byte_of(src_start + (z * src_rows + y) * src_pitch + x, seed);
        }
        if (found[at] != expected) atomicAdd(wrong, 1u);
    }
}

struct Side {
    unsigned char* memory;
    unsigned* wrong;
    hipStream_t stream;
};

static Side sides[2];
// The devices of both sides; a program that has one device copies there.
static int ids[2] = {0, 1};

static void expect(int device, size_t len, size_t start, size_t pitch, size_t rows, size_t width, size_t height,
                   size_t depth, size_t src_start, size_t src_pitch, size_t src_rows, unsigned seed, const char* what) {
    CHECK(hipSetDevice(ids[device]));
    Side& side = sides[device];
    CHECK(hipMemsetAsync(side.wrong, 0, sizeof(unsigned), side.stream));
    count_wrong<<<64, 256, 0, side.stream>>>(side.memory, len, start, pitch, rows, width, height, depth, src_start,
                                             src_pitch, src_rows, seed, 7, side.wrong);
    unsigned wrong = 1;
    CHECK(hipMemcpyAsync(&wrong, side.wrong, sizeof wrong, hipMemcpyDeviceToHost, side.stream));
    CHECK(hipStreamSynchronize(side.stream));
    if (wrong != 0) {
        printf("FAIL %s to device %d: %u wrong bytes of %zu\n", what, device, wrong, len);
        exit(1);
    }
}

static void prepare(int to, size_t len, unsigned seed) {
    for (int device = 0; device < 2; device++) {
        CHECK(hipSetDevice(ids[device]));
        fill<<<64, 256, 0, sides[device].stream>>>(sides[device].memory, len, device == to ? 7 : seed);
    }
}

// The copy on the stream of one device waits for what the other one does.
static void wait_for_other(int device) {
    hipEvent_t event;
    CHECK(hipSetDevice(ids[1 - device]));
    CHECK(hipEventCreateWithFlags(&event, hipEventDisableTiming));
    CHECK(hipEventRecord(event, sides[1 - device].stream));
    CHECK(hipSetDevice(ids[device]));
    CHECK(hipStreamWaitEvent(sides[device].stream, event, 0));
    CHECK(hipEventDestroy(event));
}

// A copy on one device is not waited for (HIP API: hipMemcpy), and no other stream waits for the null stream's here.
static void wait_for_copy_on_one_device() {
    if (ids[0] == ids[1]) CHECK(hipStreamSynchronize(nullptr));
}

int main(int argc, char** argv) {
    size_t mib = argc > 1 ? strtoull(argv[1], nullptr, 10) : 4, room = 200000;
    int count = 0;
    CHECK(hipGetDeviceCount(&count));
    ids[1] = count > 1 ? 1 : 0;
    size_t most = mib << 20 > room ? mib << 20 : room;
    for (int device = 0; device < 2; device++) {
        CHECK(hipSetDevice(ids[device]));
        CHECK(hipMalloc(&sides[device].memory, most));
        CHECK(hipMalloc(&sides[device].wrong, sizeof(unsigned)));
        CHECK(hipStreamCreateWithFlags(&sides[device].stream, hipStreamNonBlocking));
    }

    // Bytes without gaps: on a stream of either device, and without one.
    unsigned seed = 20;
    for (size_t len : {(size_t)1, (size_t)3, (size_t)4095, (size_t)65536, (size_t)131073, room - 5})
        for (int to = 0; to < 2; to++)
            for (int on = 0; on < 3; on++) {
                prepare(to, room, ++seed);
                if (on < 2) {
                    wait_for_other(on);
                    CHECK(hipMemcpyPeerAsync(sides[to].memory + 5, ids[to], sides[1 - to].memory + 1, ids[1 - to], len, sides[on].stream));
                    wait_for_other(to);
                } else {
                    CHECK(hipStreamSynchronize(sides[0].stream));
                    CHECK(hipStreamSynchronize(sides[1].stream));
                    CHECK(hipMemcpyPeer(sides[to].memory + 5, ids[to], sides[1 - to].memory + 1, ids[1 - to], len));
                    wait_for_copy_on_one_device();
                }
                expect(to, room, 5, len, 1, len, 1, 1, 1, len, 1, seed, "a copy");
            }

    // Rows and slices with gaps of other widths at the other end.
    struct { size_t width, height, depth; } sizes[] = {{1, 1, 2}, {100, 5, 1}, {257, 3, 4}, {4096, 16, 2}, {1, 300, 1}};
    for (auto size : sizes)
        for (int to = 0; to < 2; to++) {
            size_t pitch = size.width + 9, rows = size.height + 2, src_pitch = size.width + 3, src_rows = size.height + 1;
            prepare(to, room, ++seed);
            wait_for_other(to);
            hipMemcpy3DParms parms = {};
            parms.srcPtr = make_hipPitchedPtr(sides[1 - to].memory, src_pitch, src_pitch, src_rows);
            parms.dstPtr = make_hipPitchedPtr(sides[to].memory, pitch, pitch, rows);
            parms.srcPos = make_hipPos(2, 0, 0);
            parms.dstPos = make_hipPos(4, 1, 0);
            parms.extent = make_hipExtent(size.width, size.height, size.depth);
            parms.kind = hipMemcpyDefault;
            CHECK(hipMemcpy3DAsync(&parms, sides[to].stream));
            expect(to, room, pitch + 4, pitch, rows, size.width, size.height, size.depth, 2, src_pitch, src_rows, seed,
                   "a box");
        }

    // The large one.
    prepare(1, mib << 20, ++seed);
    CHECK(hipStreamSynchronize(sides[0].stream));
    CHECK(hipStreamSynchronize(sides[1].stream));
    auto begin = std::chrono::steady_clock::now();
    CHECK(hipMemcpyPeer(sides[1].memory, ids[1], sides[0].memory, ids[0], mib << 20));
    wait_for_copy_on_one_device();
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    expect(1, mib << 20, 0, mib << 20, 1, mib << 20, 1, 1, 0, mib << 20, 1, seed, "the large copy");
    printf("PASS %zu MiB in %.3f ms\n", mib, seconds * 1e3);
    return 0;
}
