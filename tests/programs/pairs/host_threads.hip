// A thread of the host for each device. Each makes its own streams and memory and takes what the other one has made, by its events.
#include "../pair.h"

#include <condition_variable>
#include <thread>

namespace {

constexpr int kRounds = 6, kCount = 400;

__global__ void mix(int* own, const int* other, int factor) {
    const int at = pair::thread();
    if (at < kCount) own[at] = own[at] * factor + other[at];
}

// Where the two threads meet.
class Meeting {
public:
    void wait() {
        std::unique_lock<std::mutex> lock(mutex_);
        const long round = round_;
        if (++here_ == 2) {
            here_ = 0;
            round_++;
            changed_.notify_all();
        } else changed_.wait(lock, [&] { return round != round_; });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int here_ = 0;
    long round_ = 0;
};

Meeting meeting;
int *values[2], *taken[2];
hipEvent_t made[2], read[2];

void work(int device) {
    const int other = 1 - device;
    pair::Queue queue(device);
    std::vector<int> begin(kCount);
    for (int i = 0; i < kCount; i++) begin[i] = i + device * 1000;
    values[device] = pair::allocate(device, begin);
    taken[device] = pair::allocate<int>(device, kCount);
    for (hipEvent_t* event : {&made[device], &read[device]}) HIP_CHECK(hipEventCreateWithFlags(event, hipEventDisableTiming));
    for (int round = 0; round < kRounds; round++) {
        if (round == kRounds / 2 && device == 0) pair::middle();
        HIP_CHECK(hipEventRecord(made[device], queue.stream));
        meeting.wait();
        HIP_CHECK(hipStreamWaitEvent(queue.stream, made[other], 0));
        pair::orders += 2;
        pair::copies++;
        HIP_CHECK(hipMemcpyPeerAsync(taken[device], device, values[other], other, kCount * sizeof(int), queue.stream));
        HIP_CHECK(hipEventRecord(read[device], queue.stream));
        meeting.wait();
        // What the other one still reads is not changed.
        HIP_CHECK(hipStreamWaitEvent(queue.stream, read[other], 0));
        queue.launch(mix, kCount, values[device], taken[device], 3 + device);
    }
    pair::wait(queue.stream);
    queue.close();
}

} // namespace

int main(int argc, char** argv) {
    pair::begin("host_threads", argc, argv);
    std::thread threads[2] = {std::thread(work, 0), std::thread(work, 1)};
    for (std::thread& thread : threads) thread.join();
    std::vector<int> want[2];
    for (int device : {0, 1})
        for (int i = 0; i < kCount; i++) want[device].push_back(i + device * 1000);
    for (int round = 0; round < kRounds; round++)
        for (int i = 0; i < kCount; i++) {
            const int before[2] = {want[0][i], want[1][i]};
            for (int device : {0, 1}) want[device][i] = before[device] * (3 + device) + before[1 - device];
        }
    for (int device : {0, 1}) {
        pair::enter(device);
        check::equal("values", pair::look(values[device], kCount), want[device]);
        HIP_CHECK(hipFree(values[device]));
        HIP_CHECK(hipFree(taken[device]));
        for (hipEvent_t event : {made[device], read[device]}) HIP_CHECK(hipEventDestroy(event));
    }
    return pair::finish();
}
