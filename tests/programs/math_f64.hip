// The f64 functions of the device library against the CPU's, over normal, huge, tiny and special arguments.
#include "check.h"

#define FUNCTIONS 28

extern "C" __global__ void functions_f64(const double* in, const double* in2, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double x = in[i], y = in2[i], a = fabs(x), unit = x / (1 + a);
    double* r = out + FUNCTIONS * i;
    r[0] = sin(x);
    r[1] = cos(x);
    r[2] = tan(unit);
    r[3] = asin(unit);
    r[4] = acos(unit);
    r[5] = atan(x);
    r[6] = atan2(x, y);
    r[7] = sinh(unit * 4);
    r[8] = cosh(unit * 4);
    r[9] = tanh(x);
    r[10] = exp(unit * 600);
    r[11] = exp2(unit * 1000);
    r[12] = log(a + 1e-300);
    r[13] = log2(a + 1e-300);
    r[14] = log10(a + 1e-300);
    r[15] = log1p(a);
    r[16] = expm1(unit);
    r[17] = pow(a + 0.01, unit * 30);
    r[18] = sqrt(a);
    r[19] = rsqrt(a + 1e-20);
    r[20] = cbrt(x);
    r[21] = hypot(unit, y);
    r[22] = x / y;
    r[23] = 1.0 / y;
    r[24] = fma(x, y, 1.0);
    r[25] = erf(unit * 3);
    r[26] = fmod(x, y);
    r[27] = tgamma(1 + a / (1 + a) * 5);
}

extern "C" __global__ void rounding_f64(const double* in, const double* in2, double* out, long long* ints, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double x = in[i], y = in2[i];
    double* r = out + 12 * i;
    r[0] = floor(x);
    r[1] = ceil(x);
    r[2] = trunc(x);
    r[3] = round(x);
    r[4] = rint(x);
    r[5] = fmin(x, y);
    r[6] = fmax(x, y);
    r[7] = copysign(x, y);
    r[8] = ldexp(x, i % 20 - 10);
    int exponent;
    r[9] = frexp(x, &exponent);
    double whole;
    r[10] = modf(x, &whole);
    r[11] = whole;
    ints[3 * i] = exponent;
    ints[3 * i + 1] = isnan(x) * 4 + isinf(x) * 2 + (signbit(x) ? 1 : 0);
    ints[3 * i + 2] = llrint(y * 1e15);
}

// Division and square root must be the correctly rounded ones, for every magnitude.
extern "C" __global__ void exact_f64(const double* a, const double* b, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[2 * i] = a[i] / b[i];
    out[2 * i + 1] = sqrt(a[i]);
}

extern "C" __global__ void exact_f32(const float* a, const float* b, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[2 * i] = a[i] / b[i];
    out[2 * i + 1] = sqrtf(a[i]);
}

static void reference(double x, double y, double* r) {
    double a = std::fabs(x), u = x / (1 + a);
    r[0] = std::sin(x), r[1] = std::cos(x), r[2] = std::tan(u), r[3] = std::asin(u), r[4] = std::acos(u), r[5] = std::atan(x), r[6] = std::atan2(x, y);
    r[7] = std::sinh(u * 4), r[8] = std::cosh(u * 4), r[9] = std::tanh(x), r[10] = std::exp(u * 600), r[11] = std::exp2(u * 1000);
    r[12] = std::log(a + 1e-300), r[13] = std::log2(a + 1e-300), r[14] = std::log10(a + 1e-300), r[15] = std::log1p(a), r[16] = std::expm1(u);
    r[17] = std::pow(a + 0.01, u * 30), r[18] = std::sqrt(a), r[19] = 1 / std::sqrt(a + 1e-20), r[20] = std::cbrt(x), r[21] = std::hypot(u, y);
    r[22] = x / y, r[23] = 1 / y, r[24] = std::fma(x, y, 1.0), r[25] = std::erf(u * 3), r[26] = std::fmod(x, y), r[27] = std::tgamma(1 + a / (1 + a) * 5);
}

template <class T, class Kernel> void check_exact(const char* what, Kernel kernel, check::Rng& rng, int exponents) {
    const int n = 2000;
    std::vector<T> a(n), b(n), want(2 * n);
    for (int i = 0; i < n; i++) {
        // Every magnitude, denormal and overflowing quotients among them.
        a[i] = static_cast<T>(std::ldexp(rng.real(0.5, 1), static_cast<int>(rng.below(2 * exponents)) - exponents));
        b[i] = static_cast<T>(std::ldexp(rng.real(0.5, 1), static_cast<int>(rng.below(2 * exponents)) - exponents) * (i & 1 ? 1 : -1));
    }
    a[0] = 0, a[1] = static_cast<T>(INFINITY), b[2] = 0, b[3] = static_cast<T>(INFINITY), a[4] = a[5] = 1, b[5] = 3, a[6] = 0, b[6] = 0;
    a[7] = std::numeric_limits<T>::denorm_min(), a[8] = std::numeric_limits<T>::max(), b[9] = std::numeric_limits<T>::denorm_min();
    for (int i = 0; i < n; i++) want[2 * i] = a[i] / b[i], want[2 * i + 1] = std::sqrt(a[i]);
    DeviceArray<T> da(a), db(b), dout(2 * n);
    kernel<<<(n + 255) / 256, 256>>>(da.get(), db.get(), dout.get(), n);
    HIP_CHECK(hipGetLastError());
    check::near(what, dout.download(), want, 0);
}

int main() {
    check::begin("math_f64");
    check::Rng rng(22);
    const int n = 320;
    std::vector<double> x(n), y(n);
    for (int i = 0; i < n; i++) {
        x[i] = rng.real(-1, 1) * std::ldexp(1.0, static_cast<int>(rng.below(i % 3 ? 8 : 50)) - 3);
        y[i] = rng.real(0.5, 3) * (i & 2 ? 1 : -1);
    }
    x[0] = 0, x[1] = -0.0, x[2] = 1, x[3] = -1, x[4] = 1e-20, x[5] = 1e15, x[6] = -3.14159265358979312, x[7] = 1.57079632679489656;
    DeviceArray<double> dx(x), dy(y), dout(FUNCTIONS * n);
    functions_f64<<<(n + 63) / 64, 64>>>(dx.get(), dy.get(), dout.get(), n);
    HIP_CHECK(hipGetLastError());
    std::vector<double> got = dout.download();
    static const char* const names[FUNCTIONS] = {"sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp", "exp2", "log", "log2",
                                                 "log10", "log1p", "expm1", "pow", "sqrt", "rsqrt", "cbrt", "hypot", "divide", "reciprocal", "fma", "erf", "fmod", "tgamma"};
    for (int f = 0; f < FUNCTIONS; f++) {
        std::vector<double> column(n), want(n), all(FUNCTIONS);
        for (int i = 0; i < n; i++) {
            reference(x[i], y[i], all.data());
            want[i] = all[f];
            column[i] = got[FUNCTIONS * i + f];
        }
        check::near(names[f], column, want, f == 17 ? 2e-14 : f == 27 ? 1e-14 : f == 10 || f == 11 ? 2e-13 : 2e-15, 5e-16); // exp: the argument's own rounding counts
    }

    std::vector<double> sx = x, want(12 * n);
    sx[8] = INFINITY, sx[9] = -INFINITY, sx[10] = NAN, sx[11] = 1e-320, sx[12] = 0.5, sx[13] = 2.5, sx[14] = -0.5, sx[15] = 4503599627370497.0, sx[16] = -1e300;
    std::vector<long long> ints(3 * n);
    for (int i = 0; i < n; i++) {
        double *r = &want[12 * i], whole, v = sx[i];
        int exponent = 0;
        r[0] = std::floor(v), r[1] = std::ceil(v), r[2] = std::trunc(v), r[3] = std::round(v), r[4] = std::nearbyint(v), r[5] = std::fmin(v, y[i]), r[6] = std::fmax(v, y[i]);
        r[7] = std::copysign(v, y[i]), r[8] = std::ldexp(v, i % 20 - 10), r[9] = std::frexp(v, &exponent), r[10] = std::modf(v, &whole), r[11] = whole;
        ints[3 * i] = std::isfinite(v) ? exponent : 0;
        ints[3 * i + 1] = std::isnan(v) * 4 + std::isinf(v) * 2 + (std::signbit(v) ? 1 : 0);
        ints[3 * i + 2] = std::llrint(y[i] * 1e15);
    }
    DeviceArray<double> dsx(sx), drounded(12 * n);
    DeviceArray<long long> dints(3 * n);
    rounding_f64<<<(n + 63) / 64, 64>>>(dsx.get(), dy.get(), drounded.get(), dints.get(), n);
    HIP_CHECK(hipGetLastError());
    check::near("rounding", drounded.download(), want, 0);
    std::vector<long long> gotints = dints.download();
    for (int i = 0; i < n; i++)
        if (!std::isfinite(sx[i])) gotints[3 * i] = 0; // not specified
    check::equal("rounding to integers", gotints, ints);

    check_exact<double>("exact f64", exact_f64, rng, 1060);
    check_exact<float>("exact f32", exact_f32, rng, 140);
    return check::finish();
}
