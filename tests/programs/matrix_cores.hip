// Matrix instructions: products of small matrices in f32, f64, f16, bf16, i8, fp8 and xf32, one wave each, chained over k.
// Where the elements lie in the wave's registers is written in `lay_out` and the store functions.
#include "check.h"

typedef float f32x4 __attribute__((ext_vector_type(4)));
typedef float f32x16 __attribute__((ext_vector_type(16)));
typedef float f32x2 __attribute__((ext_vector_type(2)));
typedef double f64x4 __attribute__((ext_vector_type(4)));
typedef int i32x4 __attribute__((ext_vector_type(4)));
typedef int i32x16 __attribute__((ext_vector_type(16)));
typedef _Float16 f16x4 __attribute__((ext_vector_type(4)));
typedef short i16x4 __attribute__((ext_vector_type(4)));

// The `count` consecutive elements of row (of a) or column (of b, given transposed) that lane has for one step: m rows, step * (64 / m) * count columns.
template <class T> __device__ const T* lay_out(const T* matrix, int lane, int m, int k, int step, int count) {
    return matrix + (lane % m) * k + (step * (64 / m) + lane / m) * count;
}

// 16 by 16 results: register r of lane is row 4 * (lane / 16) + r, column lane % 16.
template <class V, class T> __device__ void store_16(V v, T* c) {
    int lane = threadIdx.x;
    for (int r = 0; r < 4; r++) c[(4 * (lane / 16) + r) * 16 + lane % 16] = v[r];
}

// 32 by 32 results: register r is row 8 * (r / 4) + 4 * (lane / 32) + r % 4, column lane % 32.
template <class V, class T> __device__ void store_32(V v, T* c) {
    int lane = threadIdx.x;
    for (int r = 0; r < 16; r++) c[(8 * (r / 4) + 4 * (lane / 32) + r % 4) * 32 + lane % 32] = v[r];
}

extern "C" __global__ void mfma_f32_16(const float* a, const float* b, float* c, int k) {
    f32x4 sum = {};
    for (int s = 0; s < k / 4; s++) sum = __builtin_amdgcn_mfma_f32_16x16x4f32(*lay_out(a, threadIdx.x, 16, k, s, 1), *lay_out(b, threadIdx.x, 16, k, s, 1), sum, 0, 0, 0);
    store_16(sum, c);
}

extern "C" __global__ void mfma_f32_32(const float* a, const float* b, float* c, int k) {
    f32x16 sum = {};
    for (int s = 0; s < k / 2; s++) sum = __builtin_amdgcn_mfma_f32_32x32x2f32(*lay_out(a, threadIdx.x, 32, k, s, 1), *lay_out(b, threadIdx.x, 32, k, s, 1), sum, 0, 0, 0);
    store_32(sum, c);
}

extern "C" __global__ void mfma_xf32_16(const float* a, const float* b, float* c, int k) {
    f32x4 sum = {};
    for (int s = 0; s < k / 8; s++)
        sum = __builtin_amdgcn_mfma_f32_16x16x8_xf32(*reinterpret_cast<const f32x2*>(lay_out(a, threadIdx.x, 16, k, s, 2)),
                                                     *reinterpret_cast<const f32x2*>(lay_out(b, threadIdx.x, 16, k, s, 2)), sum, 0, 0, 0);
    store_16(sum, c);
}

// f64: register r of lane is row 4 * r + lane / 16.
extern "C" __global__ void mfma_f64_16(const double* a, const double* b, double* c, int k) {
    f64x4 sum = {};
    for (int s = 0; s < k / 4; s++) sum = __builtin_amdgcn_mfma_f64_16x16x4f64(*lay_out(a, threadIdx.x, 16, k, s, 1), *lay_out(b, threadIdx.x, 16, k, s, 1), sum, 0, 0, 0);
    int lane = threadIdx.x;
    for (int r = 0; r < 4; r++) c[(4 * r + lane / 16) * 16 + lane % 16] = sum[r];
}

extern "C" __global__ void mfma_f16_16(const _Float16* a, const _Float16* b, float* c, int k) {
    f32x4 sum = {};
    for (int s = 0; s < k / 16; s++)
        sum = __builtin_amdgcn_mfma_f32_16x16x16f16(*reinterpret_cast<const f16x4*>(lay_out(a, threadIdx.x, 16, k, s, 4)),
                                                    *reinterpret_cast<const f16x4*>(lay_out(b, threadIdx.x, 16, k, s, 4)), sum, 0, 0, 0);
    store_16(sum, c);
}

extern "C" __global__ void mfma_f16_32(const _Float16* a, const _Float16* b, float* c, int k) {
    f32x16 sum = {};
    for (int s = 0; s < k / 8; s++)
        sum = __builtin_amdgcn_mfma_f32_32x32x8f16(*reinterpret_cast<const f16x4*>(lay_out(a, threadIdx.x, 32, k, s, 4)),
                                                   *reinterpret_cast<const f16x4*>(lay_out(b, threadIdx.x, 32, k, s, 4)), sum, 0, 0, 0);
    store_32(sum, c);
}

// bf16 as the upper halves of f32.
extern "C" __global__ void mfma_bf16_16(const short* a, const short* b, float* c, int k) {
    f32x4 sum = {};
    for (int s = 0; s < k / 16; s++)
        sum = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(*reinterpret_cast<const i16x4*>(lay_out(a, threadIdx.x, 16, k, s, 4)),
                                                        *reinterpret_cast<const i16x4*>(lay_out(b, threadIdx.x, 16, k, s, 4)), sum, 0, 0, 0);
    store_16(sum, c);
}

extern "C" __global__ void mfma_i8_16(const signed char* a, const signed char* b, int* c, int k) {
    i32x4 sum = {};
    for (int s = 0; s < k / 32; s++)
        sum = __builtin_amdgcn_mfma_i32_16x16x32_i8(*reinterpret_cast<const long*>(lay_out(a, threadIdx.x, 16, k, s, 8)),
                                                    *reinterpret_cast<const long*>(lay_out(b, threadIdx.x, 16, k, s, 8)), sum, 0, 0, 0);
    store_16(sum, c);
}

extern "C" __global__ void mfma_i8_32(const signed char* a, const signed char* b, int* c, int k) {
    i32x16 sum = {};
    for (int s = 0; s < k / 16; s++)
        sum = __builtin_amdgcn_mfma_i32_32x32x16_i8(*reinterpret_cast<const long*>(lay_out(a, threadIdx.x, 32, k, s, 8)),
                                                    *reinterpret_cast<const long*>(lay_out(b, threadIdx.x, 32, k, s, 8)), sum, 0, 0, 0);
    store_32(sum, c);
}

// fp8 of gfx942: exponent bias 8, no infinities, 0x80 is NaN.
extern "C" __global__ void mfma_fp8_16(const unsigned char* a, const unsigned char* b, float* c, int k) {
    f32x4 sum = {};
    for (int s = 0; s < k / 32; s++)
        sum = __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(*reinterpret_cast<const long*>(lay_out(a, threadIdx.x, 16, k, s, 8)),
                                                         *reinterpret_cast<const long*>(lay_out(b, threadIdx.x, 16, k, s, 8)), sum, 0, 0, 0);
    store_16(sum, c);
}

static float from_fp8(unsigned char v) {
    int exponent = (v >> 3) & 15, mantissa = v & 7;
    float magnitude = exponent ? std::ldexp(8.0f + static_cast<float>(mantissa), exponent - 8 - 3) : std::ldexp(static_cast<float>(mantissa), 1 - 8 - 3);
    return v & 0x80 ? -magnitude : magnitude;
}

// c = a * b, b given transposed (n rows of k).
static std::vector<double> reference(const std::vector<double>& a, const std::vector<double>& b, int m, int k) {
    std::vector<double> c(m * m);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++)
            for (int l = 0; l < k; l++) c[i * m + j] += a[i * k + l] * b[j * k + l];
    return c;
}

template <class T, class C, class Kernel, class Widen>
void run(const char* what, Kernel kernel, const std::vector<T>& a, const std::vector<T>& b, int m, int k, double tolerance, Widen widen) {
    std::vector<double> wide_a, wide_b;
    for (T v : a) wide_a.push_back(widen(v));
    for (T v : b) wide_b.push_back(widen(v));
    DeviceArray<T> da(a), db(b);
    DeviceArray<C> dc(m * m);
    dc.fill_bytes(0xff);
    kernel<<<1, 64>>>(da.get(), db.get(), dc.get(), k);
    HIP_CHECK(hipGetLastError());
    check::near(what, dc.download(), reference(wide_a, wide_b, m, k), tolerance, tolerance);
}

int main() {
    check::begin("matrix_cores");
    check::Rng rng(37);
    const int k = 64;
    auto same = [](auto v) { return static_cast<double>(v); };
    auto reals = [&](int m) { return rng.reals<float>(m * k, -1, 1); };
    run<float, float>("f32 16", mfma_f32_16, reals(16), reals(16), 16, k, 1e-5, same);
    run<float, float>("f32 32", mfma_f32_32, reals(32), reals(32), 32, k, 1e-5, same);
    run<float, float>("xf32 16", mfma_xf32_16, reals(16), reals(16), 16, k, 2e-2, same); // 10 bits of mantissa
    run<double, double>("f64 16", mfma_f64_16, rng.reals<double>(16 * k, -1, 1), rng.reals<double>(16 * k, -1, 1), 16, k, 1e-13, same);
    for (int m : {16, 32}) {
        std::vector<_Float16> a(m * k), b(m * k);
        for (int i = 0; i < m * k; i++) a[i] = static_cast<_Float16>(rng.real(-1, 1)), b[i] = static_cast<_Float16>(rng.real(-1, 1));
        run<_Float16, float>("f16", m == 16 ? mfma_f16_16 : mfma_f16_32, a, b, m, k, 1e-5, same);
        std::vector<signed char> p = rng.bits<signed char>(m * k), q = rng.bits<signed char>(m * k);
        run<signed char, int>("i8", m == 16 ? mfma_i8_16 : mfma_i8_32, p, q, m, k, 0, same);
    }
    std::vector<short> a(16 * k), b(16 * k);
    for (int i = 0; i < 16 * k; i++) {
        float x = static_cast<float>(rng.real(-1, 1)), y = static_cast<float>(rng.real(-1, 1));
        unsigned u, v;
        std::memcpy(&u, &x, 4), std::memcpy(&v, &y, 4);
        a[i] = static_cast<short>(u >> 16), b[i] = static_cast<short>(v >> 16);
    }
    run<short, float>("bf16", mfma_bf16_16, a, b, 16, k, 1e-5, [](short v) {
        unsigned bits = static_cast<unsigned>(static_cast<unsigned short>(v)) << 16;
        float f;
        std::memcpy(&f, &bits, 4);
        return static_cast<double>(f);
    });
    std::vector<unsigned char> p(16 * k), q(16 * k);
    for (int i = 0; i < 16 * k; i++) {
        p[i] = static_cast<unsigned char>(rng.below(0x60) | (rng.u32() & 0x80)), q[i] = static_cast<unsigned char>(rng.below(0x60) | (rng.u32() & 0x80));
        if (p[i] == 0x80) p[i] = 0;
        if (q[i] == 0x80) q[i] = 0;
    }
    run<unsigned char, float>("fp8", mfma_fp8_16, p, q, 16, k, 1e-5, [](unsigned char v) { return static_cast<double>(from_fp8(v)); });
    return check::finish();
}
