// Conversions between integers of all widths, f32 and f64: rounding, range ends, signs; and reinterpreted bits.
#include "check.h"

extern "C" __global__ void from_f32(const float* in, long long* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = in[i];
    long long* r = out + 8 * i;
    r[0] = static_cast<int>(x);
    r[1] = static_cast<unsigned>(fabsf(x));
    r[2] = static_cast<long long>(x * 4e8f);
    r[3] = static_cast<long long>(static_cast<unsigned long long>(fabsf(x) * 8e8f));
    r[4] = static_cast<short>(static_cast<int>(x));
    r[5] = static_cast<unsigned char>(static_cast<int>(fabsf(x)));
    r[6] = __float_as_int(x);
    r[7] = __double_as_longlong(static_cast<double>(x));
}

extern "C" __global__ void from_f64(const double* in, long long* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double x = in[i];
    long long* r = out + 8 * i;
    r[0] = static_cast<int>(x);
    r[1] = static_cast<unsigned>(fabs(x));
    r[2] = static_cast<long long>(x * 4e9);
    r[3] = static_cast<long long>(static_cast<unsigned long long>(fabs(x) * 8e9));
    r[4] = __float_as_int(static_cast<float>(x));
    r[5] = __double2hiint(x);
    r[6] = __double2loint(x);
    r[7] = __double2int_rn(x);
}

extern "C" __global__ void from_integers(const long long* in, double* out, float* outf, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    long long v = in[i];
    double* r = out + 6 * i;
    r[0] = static_cast<double>(v);
    r[1] = static_cast<double>(static_cast<unsigned long long>(v));
    r[2] = static_cast<double>(static_cast<int>(v));
    r[3] = static_cast<double>(static_cast<unsigned>(v));
    r[4] = __longlong_as_double((v & 0x000fffffffffffffll) | 0x3ff0000000000000ll);
    r[5] = static_cast<double>(static_cast<unsigned char>(v >> 8)) + static_cast<double>(static_cast<signed char>(v));
    float* f = outf + 6 * i;
    f[0] = static_cast<float>(v);
    f[1] = static_cast<float>(static_cast<unsigned long long>(v));
    f[2] = static_cast<float>(static_cast<int>(v));
    f[3] = static_cast<float>(static_cast<unsigned>(v));
    f[4] = static_cast<float>(static_cast<unsigned char>(v >> 16));
    f[5] = static_cast<float>(static_cast<short>(v));
}

// What the hardware saturates (undefined in C++, defined by the conversion functions).
extern "C" __global__ void saturating(const float* in, int* out, unsigned* outu, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = __float2int_rz(in[i]);
    outu[i] = __float2uint_rz(in[i]);
}

int main() {
    check::begin("conversions");
    check::Rng rng(24);
    const int n = 1500;
    {
        std::vector<float> in(n);
        std::vector<long long> want(8 * n);
        for (int i = 0; i < n; i++) in[i] = static_cast<float>(rng.real(-1, 1) * std::ldexp(1.0, static_cast<int>(rng.below(33)) - 2));
        in[0] = 0, in[1] = -0.0f, in[2] = 2147483520.0f, in[3] = -2147483648.0f, in[4] = 0.99999994f, in[5] = -0.99999994f;
        for (int i = 0; i < n; i++) {
            float x = in[i], a = std::fabs(x);
            if (a >= 2147483648.0f && x > 0) x = in[i] = 1, a = 1;
            long long* r = &want[8 * i];
            float scaled = x * 4e8f, scaledu = a * 8e8f;
            double wide = x;
            int bits;
            std::memcpy(&bits, &x, 4), std::memcpy(&r[7], &wide, 8);
            r[0] = static_cast<int>(x), r[1] = static_cast<unsigned>(a), r[2] = static_cast<long long>(scaled), r[3] = static_cast<long long>(static_cast<unsigned long long>(scaledu));
            r[4] = static_cast<short>(static_cast<int>(x)), r[5] = static_cast<unsigned char>(static_cast<long long>(a) > INT32_MAX ? INT32_MAX : static_cast<int>(a)), r[6] = bits;
        }
        DeviceArray<float> din(in);
        DeviceArray<long long> dout(8 * n);
        from_f32<<<(n + 127) / 128, 128>>>(din.get(), dout.get(), n);
        HIP_CHECK(hipGetLastError());
        check::equal("from f32", dout.download(), want);
    }
    {
        std::vector<double> in(n);
        std::vector<long long> want(8 * n);
        for (int i = 0; i < n; i++) in[i] = rng.real(-1, 1) * std::ldexp(1.0, static_cast<int>(rng.below(33)) - 2);
        in[0] = 0, in[1] = -0.0, in[2] = 2147483647.0, in[3] = -2147483648.0, in[4] = 0.5, in[5] = 1.5, in[6] = 2.5, in[7] = -2.5, in[8] = 1e-300, in[9] = 1e-40, in[10] = 1 + 0x1p-24;
        for (int i = 0; i < n; i++) {
            double x = in[i], a = std::fabs(x);
            if (a > 2147483647.0 && x > 0) x = in[i] = 1, a = 1;
            long long* r = &want[8 * i];
            float narrow = static_cast<float>(x);
            int bits;
            unsigned long long all;
            std::memcpy(&bits, &narrow, 4), std::memcpy(&all, &x, 8);
            r[0] = static_cast<int>(x), r[1] = static_cast<unsigned>(a), r[2] = static_cast<long long>(x * 4e9), r[3] = static_cast<long long>(static_cast<unsigned long long>(a * 8e9));
            r[4] = bits, r[5] = static_cast<int>(all >> 32), r[6] = static_cast<int>(all), r[7] = static_cast<int>(std::max(std::min(std::nearbyint(x), 2147483647.0), -2147483648.0));
        }
        DeviceArray<double> din(in);
        DeviceArray<long long> dout(8 * n);
        from_f64<<<(n + 127) / 128, 128>>>(din.get(), dout.get(), n);
        HIP_CHECK(hipGetLastError());
        check::equal("from f64", dout.download(), want);
    }
    {
        std::vector<long long> in = rng.bits<long long>(n);
        std::vector<double> want(6 * n);
        std::vector<float> wantf(6 * n);
        for (int i = 0; i < n; i++) in[i] >>= rng.below(64);
        in[0] = 0, in[1] = -1, in[2] = INT64_MAX, in[3] = INT64_MIN, in[4] = (1ll << 53) + 1, in[5] = (1ll << 24) + 1, in[6] = (1ll << 54) + 2, in[7] = (1ll << 62) + (1ll << 38) + 1;
        for (int i = 0; i < n; i++) {
            long long v = in[i], mantissa = (v & 0x000fffffffffffffll) | 0x3ff0000000000000ll;
            double* r = &want[6 * i];
            float* f = &wantf[6 * i];
            r[0] = static_cast<double>(v), r[1] = static_cast<double>(static_cast<unsigned long long>(v)), r[2] = static_cast<int>(v), r[3] = static_cast<unsigned>(v);
            std::memcpy(&r[4], &mantissa, 8);
            r[5] = static_cast<unsigned char>(v >> 8) + static_cast<signed char>(v);
            f[0] = static_cast<float>(v), f[1] = static_cast<float>(static_cast<unsigned long long>(v)), f[2] = static_cast<float>(static_cast<int>(v));
            f[3] = static_cast<float>(static_cast<unsigned>(v)), f[4] = static_cast<unsigned char>(v >> 16), f[5] = static_cast<short>(v);
        }
        DeviceArray<long long> din(in);
        DeviceArray<double> dout(6 * n);
        DeviceArray<float> doutf(6 * n);
        from_integers<<<(n + 127) / 128, 128>>>(din.get(), dout.get(), doutf.get(), n);
        HIP_CHECK(hipGetLastError());
        check::equal("to f64", dout.download(), want);
        check::equal("to f32", doutf.download(), wantf);
    }
    {
        std::vector<float> in = {NAN, INFINITY, -INFINITY, 3e9f, -3e9f, 5e9f, -1, 1e30f, 2147483648.0f, 0.5f};
        DeviceArray<float> din(in);
        DeviceArray<int> dout(in.size());
        DeviceArray<unsigned> doutu(in.size());
        saturating<<<1, 64>>>(din.get(), dout.get(), doutu.get(), static_cast<int>(in.size()));
        HIP_CHECK(hipGetLastError());
        check::equal("saturating", dout.download(), {0, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, INT32_MAX, -1, INT32_MAX, INT32_MAX, 0});
        check::equal("saturating unsigned", doutu.download(), {0u, ~0u, 0u, 3000000000u, 0u, ~0u, 0u, ~0u, 2147483648u, 0u});
    }
    return check::finish();
}
