// Two devices of different workers, of which one is lost in the middle: its calls fail, the other device goes on.
//
// Usage: lost_worker LOST      LOST: the device that is lost when this program has printed READY and before it reads a line
#include "check.h"

#include <vector>

namespace {

constexpr int kCount = 256;
constexpr size_t kBytes = kCount * sizeof(int);

__global__ void store(int* out, int value) { out[threadIdx.x] = value; }
__global__ void endless(volatile int* flag) {
    while (*flag == 0) __builtin_amdgcn_s_sleep(2);
}

} // namespace

int main(int argc, char** argv) {
    check::begin("lost_worker");
    const int lost = argc > 1 ? std::atoi(argv[1]) : -1;
    int count = 0;
    HIP_CHECK(hipGetDeviceCount(&count));
    if (count < 2 || lost < 0) return check::finish();
    const int other = 1 - lost;
    int *memory[2], *pinned, value[kCount];
    hipStream_t stream[2], waiting;
    hipEvent_t event;
    HIP_CHECK(hipHostMalloc(&pinned, kBytes, 0));
    for (int device : {0, 1}) {
        HIP_CHECK(hipSetDevice(device));
        HIP_CHECK(hipMalloc(&memory[device], kBytes));
        HIP_CHECK(hipMemset(memory[device], 0, kBytes));
        HIP_CHECK(hipStreamCreateWithFlags(&stream[device], hipStreamNonBlocking));
        store<<<1, kCount, 0, stream[device]>>>(pinned, 10 + device);
        HIP_CHECK(hipStreamSynchronize(stream[device]));
        EXPECT(pinned[kCount - 1] == 10 + device);
    }
    // A stream of the other device waits for what the lost one will never do.
    HIP_CHECK(hipSetDevice(lost));
    HIP_CHECK(hipEventCreateWithFlags(&event, hipEventDisableTiming));
    endless<<<1, 1, 0, stream[lost]>>>(memory[lost]);
    HIP_CHECK(hipEventRecord(event, stream[lost]));
    HIP_CHECK(hipSetDevice(other));
    HIP_CHECK(hipStreamCreateWithFlags(&waiting, hipStreamNonBlocking));
    HIP_CHECK(hipStreamWaitEvent(waiting, event, 0));
    store<<<1, kCount, 0, waiting>>>(memory[other], 99);
    EXPECT_ERROR(hipStreamQuery(waiting), hipErrorNotReady);

    std::printf("READY\n");
    std::fflush(stdout);
    if (std::getchar() == EOF) return 1;

    // The wait has failed, which the next call says that waits.
    EXPECT_ERROR(hipStreamSynchronize(waiting), hipErrorContextIsDestroyed);
    HIP_CHECK(hipSetDevice(lost));
    EXPECT_ERROR(hipDeviceSynchronize(), hipErrorContextIsDestroyed);
    EXPECT_ERROR(hipMemcpy(value, memory[lost], kBytes, hipMemcpyDeviceToHost), hipErrorContextIsDestroyed);
    HIP_CHECK(hipSetDevice(other));
    EXPECT_ERROR(hipMemcpyPeer(memory[other], other, memory[lost], lost, kBytes), hipErrorContextIsDestroyed);
    // Everything that is of the other device goes on.
    for (int round = 0; round < 3; round++) {
        store<<<1, kCount, 0, stream[other]>>>(memory[other], 20 + round);
        HIP_CHECK(hipGetLastError());
        HIP_CHECK(hipMemcpyAsync(value, memory[other], kBytes, hipMemcpyDeviceToHost, stream[other]));
        HIP_CHECK(hipStreamSynchronize(stream[other]));
        EXPECT(value[0] == 20 + round && value[kCount - 1] == 20 + round);
        store<<<1, kCount, 0, stream[other]>>>(pinned, 30 + round);
        HIP_CHECK(hipStreamSynchronize(stream[other]));
        EXPECT(pinned[0] == 30 + round && pinned[kCount - 1] == 30 + round);
        int* more = nullptr;
        HIP_CHECK(hipMalloc(&more, kBytes));
        HIP_CHECK(hipMemcpy(more, value, kBytes, hipMemcpyHostToDevice));
        HIP_CHECK(hipDeviceSynchronize());
        HIP_CHECK(hipFree(more));
    }
    int device = -1;
    HIP_CHECK(hipGetDeviceCount(&count));
    HIP_CHECK(hipGetDevice(&device));
    EXPECT(count == 2 && device == other);
    return check::finish();
}
