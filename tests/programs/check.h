// What every program in this folder uses: error checks, comparisons with the CPU, a device array, deterministic random numbers.
//
// A program prints exactly one line on standard output, "PASS name: ..." or "FAIL name: ...", and ends with 0 or 1.
// Where no HIP device can be used it prints "NODEVICE name: ..." and ends with 2. Details of failures go to standard error.
#pragma once
#include <hip/hip_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace check {

enum Exit { kPass = 0, kFail = 1, kNoDevice = 2 };

inline const char* program = "?";
inline int failures = 0;
inline long values_compared = 0; // and conditions
inline double max_error = 0; // of all values compared as floating point, in units of the wanted value, or of 1 where that is less

// Counts one failed check; the first few are described on standard error.
[[gnu::format(printf, 1, 2)]] inline void fail(const char* format, ...) {
    if (++failures > 8) return;
    va_list arguments;
    va_start(arguments, format);
    std::fprintf(stderr, "%s: ", program);
    std::vfprintf(stderr, format, arguments);
    std::fputc('\n', stderr);
    va_end(arguments);
}

inline void hip(hipError_t error, const char* call, const char* file, int line) {
    if (error == hipSuccess) return;
    std::printf("FAIL %s: %s:%d: %s gave %s (%d)\n", program, file, line, call, hipGetErrorName(error), static_cast<int>(error));
    std::fflush(stdout);
    std::_Exit(kFail);
}

inline void hip_error(hipError_t error, hipError_t wanted, const char* call, const char* file, int line) {
    values_compared++;
    if (error != wanted)
        fail("%s:%d: %s gave %s (%d) instead of %s (%d)", file, line, call, hipGetErrorName(error), static_cast<int>(error),
             hipGetErrorName(wanted), static_cast<int>(wanted));
}

inline void that(bool ok, const char* condition, const char* file, int line) {
    values_compared++;
    if (!ok) fail("%s:%d: not true: %s", file, line, condition);
}

// To be called first. Ends the program when there is no device.
inline void begin(const char* name) {
    program = name;
    int count = 0;
    hipError_t error = hipGetDeviceCount(&count);
    if (error == hipSuccess && count > 0) return;
    std::printf("NODEVICE %s: hipGetDeviceCount gave %s, count %d\n", name, hipGetErrorName(error), count);
    std::fflush(stdout);
    std::exit(kNoDevice);
}

// The verdict; the value is main's.
inline int finish() {
    if (failures == 0)
        std::printf("PASS %s: %ld values compared, max error %.3g\n", program, values_compared, max_error);
    else
        std::printf("FAIL %s: %d checks failed\n", program, failures);
    std::fflush(stdout);
    return failures == 0 ? kPass : kFail;
}

template <class T> std::string text(T value) {
    char buffer[64];
    if constexpr (std::is_floating_point_v<T>) std::snprintf(buffer, sizeof buffer, "%.17g", static_cast<double>(value));
    else if constexpr (std::is_signed_v<T>) std::snprintf(buffer, sizeof buffer, "%lld", static_cast<long long>(value));
    else std::snprintf(buffer, sizeof buffer, "%llu (0x%llx)", static_cast<unsigned long long>(value), static_cast<unsigned long long>(value));
    return buffer;
}

// Every value must be equal, bit for bit.
template <class T> void equal(const char* what, const std::vector<T>& got, const std::vector<T>& want) {
    if (got.size() != want.size()) return fail("%s: %zu values instead of %zu", what, got.size(), want.size());
    values_compared += static_cast<long>(got.size());
    for (size_t i = 0; i < got.size(); i++)
        if (std::memcmp(&got[i], &want[i], sizeof(T)) != 0) fail("%s[%zu]: %s instead of %s", what, i, text(got[i]).c_str(), text(want[i]).c_str());
}

// |got - want| <= absolute + relative * |want|; infinities must be equal, NaN must be NaN.
template <class T, class W>
void near(const char* what, const std::vector<T>& got, const std::vector<W>& want, double relative, double absolute = 0) {
    if (got.size() != want.size()) return fail("%s: %zu values instead of %zu", what, got.size(), want.size());
    values_compared += static_cast<long>(got.size());
    for (size_t i = 0; i < got.size(); i++) {
        double g = static_cast<double>(got[i]), w = static_cast<double>(want[i]);
        if (std::isnan(w) && std::isnan(g)) continue;
        if (g == w) continue;
        double error = std::fabs(g - w);
        if (!(error <= absolute + relative * std::fabs(w))) fail("%s[%zu]: %.17g instead of %.17g", what, i, g, w);
        else max_error = std::max(max_error, error / std::max(1.0, std::fabs(w)));
    }
}

// The same numbers on every machine (SplitMix64).
class Rng {
public:
    explicit Rng(uint64_t seed) : state_(seed) {}
    uint64_t u64() {
        uint64_t z = state_ += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    uint32_t u32() { return static_cast<uint32_t>(u64() >> 32); }
    uint32_t below(uint32_t bound) { return static_cast<uint32_t>((static_cast<uint64_t>(u32()) * bound) >> 32); }
    double real(double low, double high) { return low + (high - low) * static_cast<double>(u64() >> 11) * 0x1p-53; }
    template <class T> std::vector<T> reals(size_t count, double low, double high) {
        std::vector<T> values(count);
        for (T& v : values) v = static_cast<T>(real(low, high));
        return values;
    }
    template <class T> std::vector<T> bits(size_t count) {
        std::vector<T> values(count);
        for (T& v : values) v = static_cast<T>(u64());
        return values;
    }

private:
    uint64_t state_;
};

} // namespace check

// The call must succeed, else the program ends.
#define HIP_CHECK(call) check::hip((call), #call, __FILE__, __LINE__)
// The call must give exactly this error.
#define EXPECT_ERROR(call, wanted) check::hip_error((call), (wanted), #call, __FILE__, __LINE__)
#define EXPECT(condition) check::that((condition), #condition, __FILE__, __LINE__)

// `count` values in device memory.
template <class T> class DeviceArray {
public:
    explicit DeviceArray(size_t count) : count_(count) { HIP_CHECK(hipMalloc(reinterpret_cast<void**>(&pointer_), count * sizeof(T))); }
    explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) { upload(values); }
    DeviceArray(const DeviceArray&) = delete;
    DeviceArray& operator=(const DeviceArray&) = delete;
    ~DeviceArray() { HIP_CHECK(hipFree(pointer_)); }

    T* get() const { return pointer_; }
    size_t count() const { return count_; }
    void upload(const std::vector<T>& values) {
        HIP_CHECK(hipMemcpy(pointer_, values.data(), std::min(count_, values.size()) * sizeof(T), hipMemcpyHostToDevice));
    }
    void fill_bytes(int value) { HIP_CHECK(hipMemset(pointer_, value, count_ * sizeof(T))); }
    std::vector<T> download() const {
        std::vector<T> values(count_);
        HIP_CHECK(hipMemcpy(values.data(), pointer_, count_ * sizeof(T), hipMemcpyDeviceToHost));
        return values;
    }

private:
    T* pointer_ = nullptr;
    size_t count_;
};
