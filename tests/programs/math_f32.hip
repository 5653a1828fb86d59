// The f32 functions of the device library against f64 on the CPU, over normal, huge, tiny and special arguments.
#include "check.h"

#define FUNCTIONS 32

// Row i of out: 32 results for x = in[i], y = in2[i].
extern "C" __global__ void functions_f32(const float* in, const float* in2, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = in[i], y = in2[i], a = fabsf(x), unit = x / (1 + a); // unit: -1 to 1
    float* r = out + FUNCTIONS * i;
    r[0] = sinf(x);
    r[1] = cosf(x);
    r[2] = tanf(unit);
    r[3] = asinf(unit);
    r[4] = acosf(unit);
    r[5] = atanf(x);
    r[6] = atan2f(x, y);
    r[7] = sinhf(unit * 4);
    r[8] = coshf(unit * 4);
    r[9] = tanhf(x);
    r[10] = expf(unit * 80);
    r[11] = exp2f(unit * 120);
    r[12] = logf(a + 1e-30f);
    r[13] = log2f(a + 1e-30f);
    r[14] = log10f(a + 1e-30f);
    r[15] = log1pf(a);
    r[16] = expm1f(unit);
    r[17] = powf(a + 0.01f, unit * 3);
    r[18] = sqrtf(a);
    r[19] = rsqrtf(a + 1e-20f);
    r[20] = cbrtf(x);
    r[21] = hypotf(unit, y);
    r[22] = x / y;
    r[23] = 1.0f / y;
    r[24] = fmaf(x, y, 1.0f);
    r[25] = erff(unit * 3);
    r[26] = tgammaf(1 + a / (1 + a) * 5);
    r[27] = lgammaf(1 + a);
    r[28] = fmodf(x, y);
    r[29] = fdimf(x, y);
    r[30] = sinpif(unit * 9);
    r[31] = exp10f(unit * 5);
}

extern "C" __global__ void rounding_f32(const float* in, const float* in2, float* out, int* ints, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = in[i], y = in2[i];
    float* r = out + 12 * i;
    r[0] = floorf(x);
    r[1] = ceilf(x);
    r[2] = truncf(x);
    r[3] = roundf(x);
    r[4] = rintf(x);
    r[5] = fminf(x, y);
    r[6] = fmaxf(x, y);
    r[7] = copysignf(x, y);
    r[8] = ldexpf(x, i % 20 - 10);
    int exponent;
    r[9] = frexpf(x, &exponent);
    float whole;
    r[10] = modff(x, &whole);
    r[11] = whole;
    ints[4 * i] = exponent;
    ints[4 * i + 1] = isnan(x) * 4 + isinf(x) * 2 + (signbit(x) ? 1 : 0);
    ints[4 * i + 2] = static_cast<int>(lrintf(y));
    ints[4 * i + 3] = ilogbf(y);
}

static void reference(float xf, float yf, double* r) {
    // The arguments that the kernel forms in f32 are formed in f32 here too.
    float af = std::fabs(xf), uf = xf / (1 + af);
    double x = xf, y = yf, a = af, u = uf;
    r[0] = std::sin(x), r[1] = std::cos(x), r[2] = std::tan(u), r[3] = std::asin(u), r[4] = std::acos(u), r[5] = std::atan(x), r[6] = std::atan2(x, y);
    r[7] = std::sinh(u * 4), r[8] = std::cosh(u * 4), r[9] = std::tanh(x), r[10] = std::exp(static_cast<double>(uf * 80)), r[11] = std::exp2(static_cast<double>(uf * 120));
    double positive = af + 1e-30f;
    r[12] = std::log(positive), r[13] = std::log2(positive), r[14] = std::log10(positive), r[15] = std::log1p(a), r[16] = std::expm1(u);
    r[17] = std::pow(static_cast<double>(af + 0.01f), static_cast<double>(uf * 3)), r[18] = std::sqrt(a), r[19] = 1 / std::sqrt(static_cast<double>(af + 1e-20f));
    r[20] = std::cbrt(x), r[21] = std::hypot(u, y), r[22] = x / y, r[23] = 1 / y, r[24] = std::fma(x, y, 1.0), r[25] = std::erf(static_cast<double>(uf * 3));
    r[26] = std::tgamma(1 + a / (1 + a) * 5), r[27] = std::lgamma(1 + a), r[28] = std::fmod(x, y), r[29] = std::fdim(x, y);
    double p = std::fmod(static_cast<double>(uf * 9), 2.0);
    r[30] = std::sin(p * M_PI), r[31] = std::pow(10.0, static_cast<double>(uf * 5));
}

int main() {
    check::begin("math_f32");
    check::Rng rng(21);
    const int n = 640;
    std::vector<float> x(n), y(n);
    for (int i = 0; i < n; i++) {
        x[i] = static_cast<float>(rng.real(-1, 1) * std::ldexp(1.0, static_cast<int>(rng.below(i % 3 ? 8 : 30)) - 3));
        y[i] = static_cast<float>(rng.real(0.5, 3) * (i & 2 ? 1 : -1));
    }
    x[0] = 0, x[1] = -0.0f, x[2] = 1, x[3] = -1, x[4] = 1e-10f, x[5] = 100000, x[6] = -3.14159274f, x[7] = 1.57079637f;
    DeviceArray<float> dx(x), dy(y), dout(FUNCTIONS * n);
    functions_f32<<<(n + 63) / 64, 64>>>(dx.get(), dy.get(), dout.get(), n);
    HIP_CHECK(hipGetLastError());
    std::vector<float> got = dout.download();
    // Relative and absolute tolerance of each function; the library promises a few units in the last place (2^-24 = 6e-8) of the result.
    static const char* const names[FUNCTIONS] = {"sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp", "exp2", "log", "log2", "log10", "log1p",
                                                 "expm1", "pow", "sqrt", "rsqrt", "cbrt", "hypot", "divide", "reciprocal", "fma", "erf", "tgamma", "lgamma", "fmod", "fdim", "sinpi", "exp10"};
    for (int f = 0; f < FUNCTIONS; f++) {
        std::vector<float> column(n);
        std::vector<double> want(n), all(FUNCTIONS);
        for (int i = 0; i < n; i++) {
            reference(x[i], y[i], all.data());
            want[i] = all[f];
            column[i] = got[FUNCTIONS * i + f];
        }
        bool loose = f == 26 || f == 27; // gamma functions
        check::near(names[f], column, want, loose ? 4e-6 : 1e-6, f == 22 || f == 23 ? 0 : 3e-7);
    }

    std::vector<float> sx = x, want(12 * n);
    sx[8] = INFINITY, sx[9] = -INFINITY, sx[10] = NAN, sx[11] = 1e-42f, sx[12] = 0.5f, sx[13] = 2.5f, sx[14] = -0.5f, sx[15] = 8388609, sx[16] = -1e30f;
    std::vector<int> ints(4 * n);
    for (int i = 0; i < n; i++) {
        float *r = &want[12 * i], whole, v = sx[i];
        int exponent = 0;
        r[0] = std::floor(v), r[1] = std::ceil(v), r[2] = std::trunc(v), r[3] = std::round(v), r[4] = std::nearbyint(v), r[5] = std::fmin(v, y[i]), r[6] = std::fmax(v, y[i]);
        r[7] = std::copysign(v, y[i]), r[8] = std::ldexp(v, i % 20 - 10), r[9] = std::frexp(v, &exponent), r[10] = std::modf(v, &whole), r[11] = whole;
        ints[4 * i] = std::isfinite(v) ? exponent : 0;
        ints[4 * i + 1] = std::isnan(v) * 4 + std::isinf(v) * 2 + (std::signbit(v) ? 1 : 0);
        ints[4 * i + 2] = static_cast<int>(std::lrint(y[i]));
        ints[4 * i + 3] = std::ilogb(y[i]);
    }
    DeviceArray<float> dsx(sx), drounded(12 * n);
    DeviceArray<int> dints(4 * n);
    rounding_f32<<<(n + 63) / 64, 64>>>(dsx.get(), dy.get(), drounded.get(), dints.get(), n);
    HIP_CHECK(hipGetLastError());
    check::near("rounding", drounded.download(), want, 0);
    std::vector<int> gotints = dints.download();
    for (int i = 0; i < n; i++)
        if (!std::isfinite(sx[i])) gotints[4 * i] = 0; // not specified
    check::equal("rounding to integers", gotints, ints);
    return check::finish();
}
