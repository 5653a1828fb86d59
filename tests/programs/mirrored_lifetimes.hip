// Streams, events and memory that host and device share come and go in any order, as random numbers say, while kernels, sets and copies
// use them: every call succeeds, and after each synchronization the host sees what the device wrote.
#include "check.h"

extern "C" __global__ void add_to_words(unsigned* words, unsigned value) { words[threadIdx.x] += value; }

static const size_t kWords = 64;

struct Region {
    unsigned* host = nullptr;
    int kind = 0;
    std::vector<unsigned> own, want;
};

int main() {
    check::begin("mirrored_lifetimes");
    for (uint64_t seed = 0; seed < 40; seed++) {
        check::Rng rng(seed);
        std::vector<hipStream_t> streams = {nullptr};
        std::vector<hipEvent_t> events;
        std::vector<Region*> regions;
        DeviceArray<unsigned> device(kWords);
        // One stream at a time uses the regions: others wait for it by an event.
        hipStream_t user = nullptr;
        auto pass_to = [&](hipStream_t next) {
            if (next == user) return;
            hipEvent_t event;
            HIP_CHECK(hipEventCreateWithFlags(&event, hipEventDisableTiming));
            HIP_CHECK(hipEventRecord(event, user));
            HIP_CHECK(hipStreamWaitEvent(next, event, 0));
            HIP_CHECK(hipEventDestroy(event));
            user = next;
        };
        auto remove = [&](size_t at) {
            Region* region = regions[at];
            HIP_CHECK(hipStreamSynchronize(user));
            check::equal("a region at its end", std::vector<unsigned>(region->host, region->host + kWords), region->want);
            if (region->kind == 0) HIP_CHECK(hipHostFree(region->host));
            if (region->kind == 1) HIP_CHECK(hipHostUnregister(region->host));
            if (region->kind == 2) HIP_CHECK(hipFree(region->host));
            delete region;
            regions.erase(regions.begin() + static_cast<long>(at));
        };
        for (int step = 0; step < 150; step++) {
            hipStream_t stream = streams[rng.below(static_cast<uint32_t>(streams.size()))];
            switch (rng.below(12)) {
            case 0: {
                hipStream_t made;
                HIP_CHECK(hipStreamCreateWithFlags(&made, rng.below(2) ? hipStreamNonBlocking : hipStreamDefault));
                streams.push_back(made);
                break;
            }
            case 1:
            case 2:
                if (stream) {
                    if (stream == user) pass_to(nullptr);
                    HIP_CHECK(hipStreamDestroy(stream));
                    streams.erase(std::find(streams.begin(), streams.end(), stream));
                }
                break;
            case 3: {
                Region* region = new Region;
                region->kind = static_cast<int>(rng.below(3));
                region->own.resize(kWords);
                if (region->kind == 0) HIP_CHECK(hipHostMalloc(reinterpret_cast<void**>(&region->host), kWords * 4, rng.below(2) ? hipHostMallocMapped : 0));
                if (region->kind == 1) HIP_CHECK(hipHostRegister(region->host = region->own.data(), kWords * 4, 0));
                if (region->kind == 2) HIP_CHECK(hipMallocManaged(reinterpret_cast<void**>(&region->host), kWords * 4));
                for (size_t i = 0; i < kWords; i++) region->host[i] = rng.u32();
                region->want.assign(region->host, region->host + kWords);
                regions.push_back(region);
                break;
            }
            case 4:
                if (!regions.empty()) remove(rng.below(static_cast<uint32_t>(regions.size())));
                break;
            case 5:
                while (!regions.empty()) remove(0);
                break;
            case 6: {
                hipEvent_t made;
                HIP_CHECK(hipEventCreate(&made));
                HIP_CHECK(hipEventRecord(made, stream));
                events.push_back(made);
                break;
            }
            case 7:
                if (!events.empty()) {
                    hipEvent_t event = events.back();
                    if (rng.below(2)) HIP_CHECK(hipStreamWaitEvent(stream, event, 0));
                    if (rng.below(2)) HIP_CHECK(hipEventSynchronize(event));
                    HIP_CHECK(hipEventDestroy(event));
                    events.pop_back();
                }
                break;
            case 8: {
                // A copy to the host of what no region has to do with.
                std::vector<unsigned> got(kWords);
                HIP_CHECK(hipMemsetD32Async(reinterpret_cast<hipDeviceptr_t>(device.get()), step, kWords, stream));
                HIP_CHECK(hipMemcpyDtoHAsync(got.data(), reinterpret_cast<hipDeviceptr_t>(device.get()), kWords * 4, stream));
                HIP_CHECK(hipStreamSynchronize(stream));
                check::equal("a copy", got, std::vector<unsigned>(kWords, static_cast<unsigned>(step)));
                break;
            }
            default:
                if (regions.empty()) break;
                pass_to(stream);
                Region* region = regions[rng.below(static_cast<uint32_t>(regions.size()))];
                if (rng.below(3)) {
                    unsigned value = rng.u32();
                    add_to_words<<<1, kWords, 0, stream>>>(region->host, value);
                    for (unsigned& word : region->want) word += value;
                } else {
                    HIP_CHECK(hipMemsetAsync(region->host, step, kWords * 4, stream));
                    std::memset(region->want.data(), step, kWords * 4);
                }
                if (rng.below(2)) {
                    HIP_CHECK(hipStreamSynchronize(stream));
                    for (Region* each : regions) check::equal("a region", std::vector<unsigned>(each->host, each->host + kWords), each->want);
                    region->host[step % kWords] = region->want[static_cast<size_t>(step) % kWords] = rng.u32();
                }
            }
        }
        while (!regions.empty()) remove(0);
        for (hipEvent_t event : events) HIP_CHECK(hipEventDestroy(event));
        for (hipStream_t stream : streams)
            if (stream) HIP_CHECK(hipStreamDestroy(stream));
    }
    return check::finish();
}
