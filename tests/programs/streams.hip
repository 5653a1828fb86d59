// Streams and events: independent work on several streams, order between them by events, elapsed time, queries, flags, priorities, the null stream.
#include "check.h"

// Sets out[i] = out[i] * 3 + add, `times` times over: long enough to overlap with other streams.
extern "C" __global__ void churn(unsigned* data, unsigned add, int times) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, v = data[i];
    for (int k = 0; k < times; k++) v = v * 3 + add;
    data[i] = v;
}

extern "C" __global__ void add_arrays(const unsigned* a, const unsigned* b, unsigned* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a[i] + b[i];
}

static const unsigned kCount = 512;

static unsigned churned(unsigned v, unsigned add, int times) {
    for (int k = 0; k < times; k++) v = v * 3 + add;
    return v;
}

static void independent_streams() {
    const int streams = 4;
    hipStream_t stream[streams];
    hipEvent_t start[streams], stop[streams];
    check::Rng rng(31);
    std::vector<std::vector<unsigned>> in, out(streams, std::vector<unsigned>(kCount));
    std::vector<DeviceArray<unsigned>*> data;
    for (int s = 0; s < streams; s++) {
        in.push_back(rng.bits<unsigned>(kCount));
        data.push_back(new DeviceArray<unsigned>(kCount));
        HIP_CHECK(hipStreamCreate(&stream[s]));
        HIP_CHECK(hipEventCreate(&start[s]));
        HIP_CHECK(hipEventCreate(&stop[s]));
    }
    for (int s = 0; s < streams; s++) {
        HIP_CHECK(hipMemcpyAsync(data[s]->get(), in[s].data(), kCount * sizeof(unsigned), hipMemcpyHostToDevice, stream[s]));
        HIP_CHECK(hipEventRecord(start[s], stream[s]));
        for (int k = 0; k < 3; k++) churn<<<kCount / 128, 128, 0, stream[s]>>>(data[s]->get(), static_cast<unsigned>(s + k), 50);
        HIP_CHECK(hipEventRecord(stop[s], stream[s]));
        HIP_CHECK(hipMemcpyAsync(out[s].data(), data[s]->get(), kCount * sizeof(unsigned), hipMemcpyDeviceToHost, stream[s]));
    }
    HIP_CHECK(hipGetLastError());
    for (int s = streams - 1; s >= 0; s--) {
        HIP_CHECK(hipStreamSynchronize(stream[s]));
        std::vector<unsigned> want(kCount);
        for (unsigned i = 0; i < kCount; i++) {
            want[i] = in[s][i];
            for (int k = 0; k < 3; k++) want[i] = churned(want[i], static_cast<unsigned>(s + k), 50);
        }
        check::equal("stream", out[s], want);
        float ms = -1;
        HIP_CHECK(hipEventElapsedTime(&ms, start[s], stop[s]));
        EXPECT(ms >= 0 && ms < 60000);
        HIP_CHECK(hipEventQuery(stop[s]));
        HIP_CHECK(hipStreamQuery(stream[s]));
    }
    for (int s = 0; s < streams; s++) {
        HIP_CHECK(hipEventDestroy(start[s]));
        HIP_CHECK(hipEventDestroy(stop[s]));
        HIP_CHECK(hipStreamDestroy(stream[s]));
        delete data[s];
    }
}

// Two producers, one consumer that waits for both; repeated, so that a producer also waits for the consumer.
static void order_by_events() {
    hipStream_t left, right, join;
    HIP_CHECK(hipStreamCreateWithFlags(&left, hipStreamNonBlocking));
    HIP_CHECK(hipStreamCreateWithFlags(&right, hipStreamNonBlocking));
    HIP_CHECK(hipStreamCreateWithFlags(&join, hipStreamNonBlocking));
    hipEvent_t left_ready, right_ready, joined;
    HIP_CHECK(hipEventCreateWithFlags(&left_ready, hipEventDisableTiming));
    HIP_CHECK(hipEventCreateWithFlags(&right_ready, hipEventDisableTiming));
    HIP_CHECK(hipEventCreateWithFlags(&joined, hipEventDisableTiming));
    std::vector<unsigned> a(kCount, 1), b(kCount, 2), sum(kCount);
    DeviceArray<unsigned> da(a), db(b), dsum(kCount);
    HIP_CHECK(hipDeviceSynchronize());
    for (unsigned round = 0; round < 4; round++) {
        if (round > 0) {
            HIP_CHECK(hipStreamWaitEvent(left, joined, 0));
            HIP_CHECK(hipStreamWaitEvent(right, joined, 0));
        }
        churn<<<kCount / 64, 64, 0, left>>>(da.get(), round, 200);
        HIP_CHECK(hipEventRecord(left_ready, left));
        churn<<<kCount / 256, 256, 0, right>>>(db.get(), round + 7, 10);
        HIP_CHECK(hipEventRecord(right_ready, right));
        HIP_CHECK(hipStreamWaitEvent(join, left_ready, 0));
        HIP_CHECK(hipStreamWaitEvent(join, right_ready, 0));
        add_arrays<<<kCount / 128, 128, 0, join>>>(da.get(), db.get(), dsum.get());
        HIP_CHECK(hipMemcpyAsync(da.get(), dsum.get(), kCount * sizeof(unsigned), hipMemcpyDeviceToDevice, join));
        HIP_CHECK(hipEventRecord(joined, join));
        for (unsigned i = 0; i < kCount; i++) {
            b[i] = churned(b[i], round + 7, 10);
            a[i] = churned(a[i], round, 200) + b[i];
        }
    }
    HIP_CHECK(hipEventSynchronize(joined));
    HIP_CHECK(hipMemcpy(sum.data(), dsum.get(), kCount * sizeof(unsigned), hipMemcpyDeviceToHost));
    check::equal("joined", sum, a);
    for (hipEvent_t e : {left_ready, right_ready, joined}) HIP_CHECK(hipEventDestroy(e));
    for (hipStream_t s : {left, right, join}) HIP_CHECK(hipStreamDestroy(s));
}

// Work on the null stream comes after earlier work on blocking streams, and before later work on them.
static void null_stream() {
    hipStream_t stream;
    HIP_CHECK(hipStreamCreate(&stream));
    std::vector<unsigned> v(kCount, 5), got(kCount);
    DeviceArray<unsigned> data(v), copy(kCount);
    churn<<<kCount / 128, 128, 0, stream>>>(data.get(), 1, 300);
    churn<<<kCount / 128, 128>>>(data.get(), 2, 3);
    churn<<<kCount / 128, 128, 0, stream>>>(data.get(), 3, 30);
    HIP_CHECK(hipMemcpyAsync(copy.get(), data.get(), kCount * sizeof(unsigned), hipMemcpyDeviceToDevice, stream));
    HIP_CHECK(hipMemcpy(got.data(), copy.get(), kCount * sizeof(unsigned), hipMemcpyDeviceToHost));
    for (unsigned& x : v) x = churned(churned(churned(x, 1, 300), 2, 3), 3, 30);
    check::equal("null stream", got, v);

    // The per-thread stream is one of the blocking ones.
    churn<<<kCount / 128, 128, 0, hipStreamPerThread>>>(data.get(), 4, 100);
    HIP_CHECK(hipStreamSynchronize(hipStreamPerThread));
    HIP_CHECK(hipMemcpy(got.data(), data.get(), kCount * sizeof(unsigned), hipMemcpyDeviceToHost));
    for (unsigned& x : v) x = churned(x, 4, 100);
    check::equal("per-thread stream", got, v);

    // A stream may be destroyed while it has work: the work is done nevertheless.
    churn<<<kCount / 128, 128, 0, stream>>>(data.get(), 5, 500);
    HIP_CHECK(hipStreamDestroy(stream));
    HIP_CHECK(hipDeviceSynchronize());
    HIP_CHECK(hipMemcpy(got.data(), data.get(), kCount * sizeof(unsigned), hipMemcpyDeviceToHost));
    for (unsigned& x : v) x = churned(x, 5, 500);
    check::equal("destroyed with work", got, v);
}

static void properties() {
    int least = -99, greatest = -99;
    HIP_CHECK(hipDeviceGetStreamPriorityRange(&least, &greatest));
    EXPECT(greatest <= least);
    for (int priority = greatest; priority <= least; priority++) {
        hipStream_t stream;
        int got = 99;
        unsigned flags = 99;
        HIP_CHECK(hipStreamCreateWithPriority(&stream, hipStreamNonBlocking, priority));
        HIP_CHECK(hipStreamGetPriority(stream, &got));
        HIP_CHECK(hipStreamGetFlags(stream, &flags));
        EXPECT(got == priority);
        EXPECT(flags == hipStreamNonBlocking);
        HIP_CHECK(hipStreamDestroy(stream));
    }
    hipStream_t stream;
    unsigned flags = 99;
    HIP_CHECK(hipStreamCreate(&stream));
    HIP_CHECK(hipStreamGetFlags(stream, &flags));
    EXPECT(flags == hipStreamDefault);

    // A query says "not ready" or "ready", and "ready" once the work was waited for; the same for an event.
    DeviceArray<unsigned> data(kCount);
    data.fill_bytes(0);
    hipEvent_t before, after;
    HIP_CHECK(hipEventCreate(&before));
    HIP_CHECK(hipEventCreateWithFlags(&after, hipEventBlockingSync));
    HIP_CHECK(hipEventRecord(before, stream));
    churn<<<kCount / 128, 128, 0, stream>>>(data.get(), 1, 2000);
    HIP_CHECK(hipEventRecord(after, stream));
    hipError_t state = hipStreamQuery(stream);
    EXPECT(state == hipSuccess || state == hipErrorNotReady);
    state = hipEventQuery(after);
    EXPECT(state == hipSuccess || state == hipErrorNotReady);
    HIP_CHECK(hipEventSynchronize(after));
    HIP_CHECK(hipEventQuery(before));
    HIP_CHECK(hipEventQuery(after));
    HIP_CHECK(hipStreamQuery(stream));
    float forward = -1, backward = 1, none = -1;
    HIP_CHECK(hipEventElapsedTime(&forward, before, after));
    HIP_CHECK(hipEventElapsedTime(&backward, after, before));
    HIP_CHECK(hipEventElapsedTime(&none, after, after));
    EXPECT(forward > 0);
    EXPECT(backward < 0);
    EXPECT(std::fabs(none) < 0.1f);
    HIP_CHECK(hipEventDestroy(before));
    HIP_CHECK(hipEventDestroy(after));
    HIP_CHECK(hipStreamDestroy(stream));
}

// Words of a mask of compute units: what the program does not say of a unit it leaves in, and a mask without units is none.
static void compute_units() {
    hipDeviceProp_t properties;
    HIP_CHECK(hipGetDeviceProperties(&properties, 0));
    const unsigned units = static_cast<unsigned>(properties.multiProcessorCount), words = (units + 31) / 32;
    std::vector<uint32_t> all(words, 0xffffffff), got(words + 1, 0xabababab), none(words, 0);
    if (units % 32 != 0) all.back() = (uint32_t{1} << units % 32) - 1;
    auto mask_of = [&](hipStream_t stream) {
        HIP_CHECK(hipExtStreamGetCUMask(stream, words + 1, got.data()));
        EXPECT(got.back() == 0xabababab);
        return std::vector<uint32_t>(got.begin(), got.end() - 1);
    };
    check::equal("the null stream's units", mask_of(nullptr), all);
    check::equal("the thread's stream's units", mask_of(hipStreamPerThread), all);
    std::vector<uint32_t> some(words, 0x12345678);
    for (const auto& asked : {std::vector<uint32_t>{0xffff}, some, none}) {
        hipStream_t stream;
        HIP_CHECK(hipExtStreamCreateWithCUMask(&stream, static_cast<uint32_t>(asked.size()), asked.data()));
        std::vector<uint32_t> want = all;
        if (asked != none)
            for (size_t i = 0; i < asked.size(); i++) want[i] &= asked[i];
        check::equal("units", mask_of(stream), want);
        HIP_CHECK(hipStreamDestroy(stream));
    }
    hipStream_t stream;
    EXPECT_ERROR(hipExtStreamGetCUMask(nullptr, words, nullptr), hipErrorInvalidValue);
    EXPECT_ERROR(hipExtStreamGetCUMask(nullptr, words - 1, got.data()), hipErrorInvalidValue);
    EXPECT_ERROR(hipExtStreamGetCUMask(nullptr, 0, got.data()), hipErrorInvalidValue);
    EXPECT_ERROR(hipExtStreamCreateWithCUMask(nullptr, words, some.data()), hipErrorInvalidHandle);
    EXPECT_ERROR(hipExtStreamCreateWithCUMask(&stream, 0, some.data()), hipErrorInvalidValue);
    EXPECT_ERROR(hipExtStreamCreateWithCUMask(&stream, words, nullptr), hipErrorInvalidValue);
}

int main() {
    check::begin("streams");
    independent_streams();
    order_by_events();
    null_stream();
    properties();
    compute_units();
    return check::finish();
}
