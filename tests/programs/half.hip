// f16 (hip_fp16.h): arithmetic, fused multiply-add, comparisons, conversions, pairs, and functions; against rounding on the CPU.
#include <hip/hip_fp16.h>

#include "check.h"

extern "C" __global__ void arithmetic_f16(const __half* a, const __half* b, const __half* c, __half* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __half* r = out + 8 * i;
    r[0] = __hadd(a[i], b[i]);
    r[1] = __hsub(a[i], b[i]);
    r[2] = __hmul(a[i], b[i]);
    r[3] = __hfma(a[i], b[i], c[i]);
    r[4] = __hneg(a[i]);
    r[5] = __habs(a[i]);
    r[6] = __hlt(a[i], b[i]) ? a[i] : b[i];
    r[7] = __hdiv(a[i], b[i]);
}

extern "C" __global__ void pairs_f16(const __half2* a, const __half2* b, const __half2* c, __half2* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __half2* r = out + 4 * i;
    r[0] = __hadd2(a[i], b[i]);
    r[1] = __hmul2(a[i], b[i]);
    r[2] = __hfma2(a[i], b[i], c[i]);
    r[3] = __lowhigh2highlow(a[i]);
}

extern "C" __global__ void convert_f16(const float* in, const __half* halves, __half* to_half, float* to_float, int* to_int, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    to_half[i] = __float2half(in[i]);
    to_float[i] = __half2float(halves[i]);
    to_int[i] = __half2int_rz(halves[i]);
}

extern "C" __global__ void functions_f16(const __half* in, __half* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __half x = in[i];
    __half* r = out + 8 * i;
    r[0] = hsqrt(x);
    r[1] = hrcp(x);
    r[2] = hrsqrt(x);
    r[3] = hexp2(x);
    r[4] = hlog2(x);
    r[5] = hfloor(x);
    r[6] = htrunc(x);
    r[7] = hrint(x);
}

// Dot products: f16 inputs, f32 sums.
extern "C" __global__ void dot_f16(const _Float16* a, const _Float16* b, float* out, int length) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < length; k++) sum += static_cast<float>(a[i * length + k]) * static_cast<float>(b[i * length + k]);
    out[i] = sum;
}

// The compiler's own type, in an expression that it may pack.
extern "C" __global__ void polynomial_f16(const _Float16* x, _Float16* y, int n) {
    int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
    for (int k = i; k < i + 2 && k < n; k++) {
        _Float16 v = x[k];
        y[k] = v > static_cast<_Float16>(0) ? v * v + v : v * static_cast<_Float16>(0.25f) - static_cast<_Float16>(1);
    }
}

using f16 = _Float16; // on the CPU: the compiler's conversions, checked against double below

static std::vector<f16> round_to_half(const std::vector<double>& values) {
    std::vector<f16> halves(values.size());
    for (size_t i = 0; i < values.size(); i++) halves[i] = static_cast<f16>(values[i]);
    return halves;
}

static std::vector<float> widen(const std::vector<f16>& halves) { return {halves.begin(), halves.end()}; }

int main() {
    check::begin("half");
    check::Rng rng(20);
    const int n = 2000;
    std::vector<f16> a(n), b(n), c(n);
    for (int i = 0; i < n; i++) {
        double magnitude = std::ldexp(1.0, static_cast<int>(rng.below(14)) - 7);
        a[i] = static_cast<f16>(rng.real(-1, 1) * magnitude), b[i] = static_cast<f16>(rng.real(0.1, 1) * magnitude * (i & 1 ? 1 : -1)), c[i] = static_cast<f16>(rng.real(-1, 1));
    }
    a[0] = static_cast<f16>(6e-8f), a[1] = static_cast<f16>(1e-5f); // denormal
    DeviceArray<f16> da(a), db(b), dc(c), dout(8 * n);
    auto half_pointer = [](const DeviceArray<f16>& v) { return reinterpret_cast<__half*>(v.get()); };
    auto pair_pointer = [](const DeviceArray<f16>& v) { return reinterpret_cast<__half2*>(v.get()); };
    {
        std::vector<double> want(8 * n);
        for (int i = 0; i < n; i++) {
            double x = a[i], y = b[i], z = c[i], *r = &want[8 * i];
            r[0] = x + y, r[1] = x - y, r[2] = x * y, r[3] = x * y + z, r[4] = -x, r[5] = std::fabs(x), r[6] = std::min(x, y), r[7] = x / y;
        }
        std::vector<float> rounded = widen(round_to_half(want));
        arithmetic_f16<<<(n + 127) / 128, 128>>>(half_pointer(da), half_pointer(db), half_pointer(dc), half_pointer(dout), n);
        HIP_CHECK(hipGetLastError());
        std::vector<float> got = widen(dout.download()), quotients, wanted_quotients;
        for (int i = 0; i < n; i++) {
            quotients.push_back(got[8 * i + 7]), wanted_quotients.push_back(rounded[8 * i + 7]);
            got[8 * i + 7] = rounded[8 * i + 7] = 0;
        }
        check::equal("arithmetic", got, rounded);
        check::near("division", quotients, wanted_quotients, 1e-3, 1e-7); // may be one unit off
    }
    {
        const int pairs = n / 2;
        std::vector<double> want(8 * pairs);
        for (int i = 0; i < pairs; i++)
            for (int k = 0; k < 2; k++) {
                double x = a[2 * i + k], y = b[2 * i + k], z = c[2 * i + k], *r = &want[8 * i + k];
                r[0] = x + y, r[2] = x * y, r[4] = x * y + z, r[6] = a[2 * i + 1 - k];
            }
        DeviceArray<f16> out(8 * pairs);
        pairs_f16<<<(pairs + 127) / 128, 128>>>(pair_pointer(da), pair_pointer(db), pair_pointer(dc), pair_pointer(out), pairs);
        HIP_CHECK(hipGetLastError());
        check::equal("pairs", widen(out.download()), widen(round_to_half(want)));
    }
    {
        std::vector<float> in(n), wide(n);
        std::vector<int> whole(n);
        for (int i = 0; i < n; i++) in[i] = static_cast<float>(rng.real(-1, 1) * std::ldexp(1.0, static_cast<int>(rng.below(40)) - 26));
        in[0] = 65504, in[1] = 65519, in[2] = 65520, in[3] = 1e30f, in[4] = 2.98e-8f, in[5] = 2.99e-8f, in[6] = 0.1f, in[7] = -0.0f, in[8] = INFINITY;
        std::vector<double> in64(in.begin(), in.end());
        for (int i = 0; i < n; i++) {
            wide[i] = static_cast<float>(a[i]);
            whole[i] = static_cast<int>(wide[i]);
        }
        DeviceArray<float> din(in), dwide(n);
        DeviceArray<f16> dhalf(n);
        DeviceArray<int> dwhole(n);
        convert_f16<<<(n + 127) / 128, 128>>>(din.get(), half_pointer(da), half_pointer(dhalf), dwide.get(), dwhole.get(), n);
        HIP_CHECK(hipGetLastError());
        check::equal("to f16", widen(dhalf.download()), widen(round_to_half(in64)));
        check::equal("to f32", dwide.download(), wide);
        check::equal("to int", dwhole.download(), whole);
    }
    {
        std::vector<f16> x(n);
        std::vector<double> want(8 * n);
        for (int i = 0; i < n; i++) {
            x[i] = static_cast<f16>(rng.real(0.01, 12));
            double v = x[i], *r = &want[8 * i];
            r[0] = std::sqrt(v), r[1] = 1 / v, r[2] = 1 / std::sqrt(v), r[3] = std::exp2(v), r[4] = std::log2(v), r[5] = std::floor(v), r[6] = std::trunc(v), r[7] = std::nearbyint(v);
        }
        DeviceArray<f16> dx(x);
        functions_f16<<<(n + 127) / 128, 128>>>(half_pointer(dx), half_pointer(dout), n);
        HIP_CHECK(hipGetLastError());
        check::near("functions", widen(dout.download()), want, 2e-3, 1e-3);
    }
    {
        const int length = 30, count = 64;
        std::vector<double> want(count);
        std::vector<float> x(n), y;
        for (int i = 0; i < count; i++)
            for (int k = 0; k < length; k++) want[i] += static_cast<double>(a[i * length + k]) * static_cast<double>(c[i * length + k]);
        DeviceArray<float> dots(count);
        dot_f16<<<1, count>>>(da.get(), dc.get(), dots.get(), length);
        HIP_CHECK(hipGetLastError());
        check::near("dot", dots.download(), want, 1e-5, 1e-4);
        DeviceArray<f16> dy(n);
        polynomial_f16<<<(n + 127) / 128, 64>>>(dc.get(), dy.get(), n);
        HIP_CHECK(hipGetLastError());
        std::vector<double> wanty(n);
        for (int i = 0; i < n; i++) {
            double v = c[i];
            wanty[i] = v > 0 ? v * v + v : v * 0.25 - 1;
        }
        check::near("polynomial", widen(dy.download()), wanty, 2e-3, 1e-3);
    }
    return check::finish();
}
