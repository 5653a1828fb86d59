// Every f16 through the f16 functions, against f64 on the CPU; comparisons of all kinds of f16; f32 and f64 functions with one right result,
// over random and special arguments, bit for bit.
#include <hip/hip_fp16.h>

#include "check.h"

using check::Rng;

// Name, function on the CPU, units of the last place by which the device library may miss the exact result. Its sine and cosine are
// polynomials in f16; its reciprocal root, without optimization, is a root and a reciprocal.
#define F16_FUNCTIONS(F)                                                                                                                  \
    F(hcos, std::cos, 1.5)                                                                                                                 \
    F(hsin, std::sin, 1.5)                                                                                                                 \
    F(hexp, std::exp, 0.51)                                                                                                                \
    F(hexp2, std::exp2, 0.51)                                                                                                              \
    F(hexp10, ten_to, 0.51)                                                                                                                \
    F(hlog, std::log, 0.51)                                                                                                                \
    F(hlog2, std::log2, 0.51)                                                                                                              \
    F(hlog10, std::log10, 0.51)                                                                                                            \
    F(hrcp, reciprocal, 0.51)                                                                                                              \
    F(hrsqrt, reciprocal_root, 1.5)                                                                                                        \
    F(hsqrt, std::sqrt, 0.5)                                                                                                               \
    F(htrunc, std::trunc, 0)                                                                                                               \
    F(hrint, std::nearbyint, 0)                                                                                                            \
    F(hceil, std::ceil, 0)                                                                                                                 \
    F(hfloor, std::floor, 0)

static double ten_to(double x) { return std::pow(10.0, x); }
static double reciprocal(double x) { return 1 / x; }
static double reciprocal_root(double x) { return 1 / std::sqrt(x); }

#define KERNEL(name, cpu, units)                                                                                                          \
    extern "C" __global__ void every_##name(const __half* in, __half* out) {                                                               \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                                                                     \
        out[i] = name(in[i]);                                                                                                              \
    }
F16_FUNCTIONS(KERNEL)

static const int kHalves = 1 << 16;

static double value(uint16_t bits) {
    _Float16 half;
    std::memcpy(&half, &bits, sizeof half);
    return static_cast<double>(half);
}

// The distance of a result from the exact one in units of the last place; infinite where one of the two is special and the other is not.
static double units(double got, double exact) {
    if (std::isnan(exact) || std::isnan(got)) return std::isnan(exact) == std::isnan(got) ? 0 : INFINITY;
    const double first_infinite = 65520;
    if (std::fabs(exact) >= first_infinite) return got == std::copysign(INFINITY, exact) ? 0 : INFINITY;
    int exponent = -14;
    if (exact != 0) std::frexp(exact, &exponent), exponent = std::max(exponent - 1, -14);
    return std::fabs(got - exact) / std::ldexp(1.0, exponent - 10);
}

static void every_half() {
    std::vector<uint16_t> all(kHalves);
    for (int i = 0; i < kHalves; i++) all[i] = static_cast<uint16_t>(i);
    DeviceArray<uint16_t> in(all), out(kHalves);
    auto* from = reinterpret_cast<const __half*>(in.get());
    auto* to = reinterpret_cast<__half*>(out.get());
#define CHECK(name, cpu, limit)                                                                                                           \
    every_##name<<<kHalves / 256, 256>>>(from, to);                                                                                        \
    HIP_CHECK(hipGetLastError());                                                                                                          \
    {                                                                                                                                      \
        auto got = out.download();                                                                                                             \
        check::values_compared += kHalves;                                                                                                 \
        for (int i = 0; i < kHalves; i++) {                                                                                                \
            double x = value(all[i]), exact = cpu(x);                                                                                      \
            if (!(units(value(got[i]), exact) <= limit)) check::fail(#name "(%g): %g, exactly %g", x, value(got[i]), exact);              \
        }                                                                                                                                  \
    }
    F16_FUNCTIONS(CHECK)
}

extern "C" __global__ void compare_f16(const __half* all, unsigned* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * n) return;
    __half a = all[i % n], b = all[i / n];
    __half2 aa{a, a}, bb{b, b};
    const bool results[] = {
        __heq(a, b),      __hne(a, b),      __hlt(a, b),      __hle(a, b),      __hgt(a, b),      __hge(a, b),
        __hequ(a, b),     __hneu(a, b),     __hltu(a, b),     __hleu(a, b),     __hgtu(a, b),     __hgeu(a, b),
        __hbeq2(aa, bb),  __hbne2(aa, bb),  __hblt2(aa, bb),  __hble2(aa, bb),  __hbgt2(aa, bb),  __hbge2(aa, bb),
        __hbequ2(aa, bb), __hbneu2(aa, bb), __hbltu2(aa, bb), __hbleu2(aa, bb), __hbgtu2(aa, bb), __hbgeu2(aa, bb),
        __hisnan(a),      __hisinf(a) != 0,
    };
    unsigned bits = 0;
    for (unsigned j = 0; j < sizeof results; j++) bits |= results[j] ? 1u << j : 0;
    out[i] = bits;
}

// The names with `u` are true for what is unordered; those of pairs are the ordered ones in HIP's headers, whatever their names say.
static unsigned compared(double a, double b) {
    const bool lt = a < b, eq = a == b, gt = a > b, un = std::isnan(a) || std::isnan(b);
    const bool ordered[] = {eq, !eq, lt, lt || eq, gt, gt || eq};
    const bool unordered[] = {eq || un, !eq, lt || un, lt || eq || un, gt || un, gt || eq || un};
    unsigned bits = 0;
    for (int j = 0; j < 6; j++) {
        for (int group : {0, 2, 3}) bits |= ordered[j] ? 1u << (group * 6 + j) : 0;
        bits |= unordered[j] ? 1u << (6 + j) : 0;
    }
    return bits | (std::isnan(a) ? 1u << 24 : 0) | (std::isinf(a) ? 1u << 25 : 0);
}

static void comparisons() {
    const std::vector<uint16_t> all = {0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x3bff, 0x3c00, 0x3c01, 0xbc00,
                                       0x4000, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe00, 0x7c01, 0xfc01};
    const int n = static_cast<int>(all.size());
    DeviceArray<uint16_t> in(all);
    DeviceArray<unsigned> out(n * n);
    compare_f16<<<(n * n + 63) / 64, 64>>>(reinterpret_cast<const __half*>(in.get()), out.get(), n);
    HIP_CHECK(hipGetLastError());
    std::vector<unsigned> wanted;
    for (int i = 0; i < n * n; i++) wanted.push_back(compared(value(all[i % n]), value(all[i / n])));
    check::equal("comparisons", out.download(), wanted);
}

struct Results {
    float next, fused, remainder, quotient, root, reciprocal_root;
    int quotient_bits, exponent, exponent_f64, unused;
    double fused_f64, root_f64, remainder_f64, quotient_f64;
};

extern "C" __global__ void exact(const float* a, const float* b, const float* c, Results* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Results r = {};
    const double da = a[i], db = b[i], dc = c[i];
    r.next = nextafterf(a[i], b[i]);
    r.fused = fmaf(a[i], b[i], c[i]);
    r.remainder = remquof(a[i], b[i], &r.quotient_bits);
    r.quotient = a[i] / b[i];
    r.root = sqrtf(a[i]);
    r.reciprocal_root = __frsqrt_rn(a[i]);
    r.exponent = ilogbf(a[i]);
    r.exponent_f64 = ilogb(da);
    r.fused_f64 = fma(da, db, dc);
    r.root_f64 = sqrt(da);
    r.remainder_f64 = remainder(da, db);
    r.quotient_f64 = da / db;
    out[i] = r;
}

template <class T> static void same(const char* what, float a, float b, float c, T got, T wanted) {
    check::values_compared++;
    const bool both_nan = std::isnan(static_cast<double>(got)) && std::isnan(static_cast<double>(wanted));
    if (!both_nan && std::memcmp(&got, &wanted, sizeof got) != 0)
        check::fail("%s of %a, %a, %a: %a instead of %a", what, a, b, c, static_cast<double>(got), static_cast<double>(wanted));
}

static std::vector<float> arguments(Rng& rng, int n) {
    const float special[] = {0.0f,  -0.0f,           1.0f,  -1.0f,           INFINITY,        -INFINITY,        NAN,  0x1p-149f,
                             -0x1p-149f, 0x1p-126f, 0x1.fffffcp-127f, 0x1.fffffep127f, -0x1.fffffep127f, 0.5f, 2.0f, 0x1.000002p0f};
    std::vector<float> all(n);
    for (float& x : all) {
        const uint32_t bits = rng.u32();
        switch (rng.u32() % 5) {
        case 0: x = special[bits % 16]; break;
        case 1: x = std::ldexp(static_cast<float>(bits % 100000) / 777 - 60, static_cast<int>(bits >> 20) % 20); break;
        default: std::memcpy(&x, &bits, sizeof x);
        }
    }
    return all;
}

static void one_right_result() {
    const int n = 1 << 15;
    Rng rng(7);
    const auto a = arguments(rng, n), b = arguments(rng, n), c = arguments(rng, n);
    DeviceArray<float> da(a), db(b), dc(c);
    DeviceArray<Results> out(n);
    exact<<<n / 256, 256>>>(da.get(), db.get(), dc.get(), out.get());
    HIP_CHECK(hipGetLastError());
    const auto got = out.download();
    for (int i = 0; i < n; i++) {
        const Results& r = got[i];
        const float x = a[i], y = b[i], z = c[i];
        const double dx = x, dy = y, dz = z;
        int quotient = 0;
        const float remainder = std::remquo(x, y, &quotient);
        same("nextafterf", x, y, z, r.next, std::nextafter(x, y));
        same("fmaf", x, y, z, r.fused, std::fma(x, y, z));
        same("remquof", x, y, z, r.remainder, remainder);
        if (!std::isnan(remainder)) same("remquof's quotient", x, y, z, r.quotient_bits & 7, quotient & 7);
        same("a quotient of f32", x, y, z, r.quotient, x / y);
        same("sqrtf", x, y, z, r.root, std::sqrt(x));
        // f64 has more than twice the bits, so that rounding its result once more is hardly ever wrong; the device's is 1 unit from the exact one.
        const double exact_root = 1 / std::sqrt(dx);
        const float low = std::nextafter(static_cast<float>(exact_root), -INFINITY), high = std::nextafter(static_cast<float>(exact_root), INFINITY);
        if (std::isnan(exact_root) ? !std::isnan(r.reciprocal_root) : !(r.reciprocal_root >= low && r.reciprocal_root <= high))
            check::fail("__frsqrt_rn of %a: %a instead of %a", dx, static_cast<double>(r.reciprocal_root), exact_root);
        // C leaves open what NaN gives: the device library's is INT_MAX.
        const int nan = INT32_MAX;
        same("ilogbf", x, y, z, r.exponent, std::isnan(x) ? nan : std::ilogb(x));
        same("ilogb", x, y, z, r.exponent_f64, std::isnan(x) ? nan : std::ilogb(dx));
        same("fma", x, y, z, r.fused_f64, std::fma(dx, dy, dz));
        same("sqrt", x, y, z, r.root_f64, std::sqrt(dx));
        same("remainder", x, y, z, r.remainder_f64, std::remainder(dx, dy));
        same("a quotient of f64", x, y, z, r.quotient_f64, dx / dy);
    }
}

int main() {
    check::begin("exact_numbers");
    every_half();
    comparisons();
    one_right_result();
    return check::finish();
}
