// Integers of 8 and 16 bits: wrapping, sign extension, shifts, division, saturation, packed vectors, unaligned reads, bytes of words.
#include "check.h"

template <class T> __host__ __device__ inline void small_arithmetic(T a, T b, T* r) {
    r[0] = static_cast<T>(a + b);
    r[1] = static_cast<T>(a - b);
    r[2] = static_cast<T>(a * b);
    r[3] = static_cast<T>(b == 0 ? 77 : a / b);
    r[4] = static_cast<T>(b == 0 ? 78 : a % b);
    r[5] = static_cast<T>(a << (b & (sizeof(T) * 8 - 1)));
    r[6] = static_cast<T>(a >> (b & (sizeof(T) * 8 - 1)));
    r[7] = a < b ? a : b;
    r[8] = a > b ? a : b;
    r[9] = static_cast<T>((a & b) ^ ~a);
    r[10] = static_cast<T>(-a);
    r[11] = static_cast<T>(a == b ? 1 : a > b ? 2 : 3);
}

extern "C" __global__ void arithmetic_u8(const unsigned char* a, const unsigned char* b, unsigned char* r, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) small_arithmetic(a[i], b[i], r + 12 * i);
}
extern "C" __global__ void arithmetic_i8(const signed char* a, const signed char* b, signed char* r, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) small_arithmetic(a[i], b[i], r + 12 * i);
}
extern "C" __global__ void arithmetic_u16(const unsigned short* a, const unsigned short* b, unsigned short* r, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) small_arithmetic(a[i], b[i], r + 12 * i);
}
extern "C" __global__ void arithmetic_i16(const short* a, const short* b, short* r, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) small_arithmetic(a[i], b[i], r + 12 * i);
}

// Image-like work on four bytes at a time: blend, with saturation.
extern "C" __global__ void blend(const uchar4* a, const uchar4* b, uchar4* out, int weight, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uchar4 x = a[i], y = b[i], r;
    auto mix = [weight](int p, int q) {
        int v = (p * weight + q * 100) >> 7;
        return static_cast<unsigned char>(v > 255 ? 255 : v);
    };
    r.x = mix(x.x, y.x);
    r.y = mix(x.y, y.y);
    r.z = mix(x.z, y.z);
    r.w = mix(x.w, y.w);
    out[i] = r;
}

extern "C" __global__ void packed_shorts(const short2* a, const short2* b, short2* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    short2 x = a[i], y = b[i];
    out[4 * i] = x + y;
    out[4 * i + 1] = x - y;
    out[4 * i + 2] = x * y;
    out[4 * i + 3] = short2{static_cast<short>(x.x > y.x ? x.x : y.x), static_cast<short>(x.y < y.y ? x.y : y.y)};
}

// Words at any byte address, bytes of words, byte permutation.
extern "C" __global__ void bytes_of_words(const unsigned char* bytes, unsigned* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned word;
    __builtin_memcpy(&word, bytes + i, 4);
    unsigned short half;
    __builtin_memcpy(&half, bytes + i + 1, 2);
    unsigned long long wide;
    __builtin_memcpy(&wide, bytes + i, 8);
    out[6 * i] = word;
    out[6 * i + 1] = half;
    out[6 * i + 2] = static_cast<unsigned>(wide >> 24);
    out[6 * i + 3] = __builtin_bswap32(word);
    out[6 * i + 4] = (word & 0xff) + (word >> 8 & 0xff) * 3 + (word >> 16 & 0xff) * 5 + (word >> 24) * 7;
    out[6 * i + 5] = __byte_perm(word, static_cast<unsigned>(wide >> 32), 0x6240);
}

template <class T, class Kernel> void run(const char* what, Kernel kernel, check::Rng& rng) {
    const int n = 3000;
    std::vector<T> a = rng.bits<T>(n), b = rng.bits<T>(n), want(12 * n);
    for (int i = 0; i < n; i += 5) b[i] = static_cast<T>(rng.below(7)); // small divisors
    for (int i = 0; i < n; i++) small_arithmetic(a[i], b[i], &want[12 * i]);
    DeviceArray<T> da(a), db(b), dout(want.size());
    kernel<<<(n + 255) / 256, 256>>>(da.get(), db.get(), dout.get(), n);
    HIP_CHECK(hipGetLastError());
    check::equal(what, dout.download(), want);
}

int main() {
    check::begin("small_ints");
    check::Rng rng(19);
    run<unsigned char>("u8", arithmetic_u8, rng);
    run<signed char>("i8", arithmetic_i8, rng);
    run<unsigned short>("u16", arithmetic_u16, rng);
    run<short>("i16", arithmetic_i16, rng);
    const int n = 2000;
    {
        std::vector<unsigned char> a = rng.bits<unsigned char>(4 * n), b = rng.bits<unsigned char>(4 * n), want(4 * n);
        for (int i = 0; i < 4 * n; i++) want[i] = static_cast<unsigned char>(std::min((a[i] * 90 + b[i] * 100) >> 7, 255));
        DeviceArray<unsigned char> da(a), db(b), dout(4 * n);
        blend<<<(n + 63) / 64, 64>>>(reinterpret_cast<uchar4*>(da.get()), reinterpret_cast<uchar4*>(db.get()), reinterpret_cast<uchar4*>(dout.get()), 90, n);
        HIP_CHECK(hipGetLastError());
        check::equal("blend", dout.download(), want);
    }
    {
        std::vector<short> a = rng.bits<short>(2 * n), b = rng.bits<short>(2 * n), want(8 * n);
        for (int i = 0; i < n; i++)
            for (int k = 0; k < 2; k++) {
                short x = a[2 * i + k], y = b[2 * i + k];
                want[8 * i + k] = static_cast<short>(x + y);
                want[8 * i + 2 + k] = static_cast<short>(x - y);
                want[8 * i + 4 + k] = static_cast<short>(x * y);
                want[8 * i + 6 + k] = k == 0 ? std::max(x, y) : std::min(x, y);
            }
        DeviceArray<short> da(a), db(b), dout(8 * n);
        packed_shorts<<<(n + 127) / 128, 128>>>(reinterpret_cast<short2*>(da.get()), reinterpret_cast<short2*>(db.get()), reinterpret_cast<short2*>(dout.get()), n);
        HIP_CHECK(hipGetLastError());
        check::equal("packed shorts", dout.download(), want);
    }
    {
        std::vector<unsigned char> bytes = rng.bits<unsigned char>(n + 8);
        std::vector<unsigned> want(6 * n);
        for (int i = 0; i < n; i++) {
            unsigned word;
            unsigned short half;
            unsigned long long wide;
            std::memcpy(&word, &bytes[i], 4), std::memcpy(&half, &bytes[i + 1], 2), std::memcpy(&wide, &bytes[i], 8);
            unsigned* r = &want[6 * i];
            r[0] = word, r[1] = half, r[2] = static_cast<unsigned>(wide >> 24), r[3] = __builtin_bswap32(word);
            r[4] = bytes[i] + bytes[i + 1] * 3u + bytes[i + 2] * 5u + bytes[i + 3] * 7u;
            r[5] = bytes[i] | bytes[i + 4] << 8 | bytes[i + 2] << 16 | static_cast<unsigned>(bytes[i + 6]) << 24; // selector 0x6240
        }
        DeviceArray<unsigned char> dbytes(bytes);
        DeviceArray<unsigned> dout(want.size());
        bytes_of_words<<<(n + 127) / 128, 128>>>(dbytes.get(), dout.get(), n);
        HIP_CHECK(hipGetLastError());
        check::equal("bytes of words", dout.download(), want);
    }
    return check::finish();
}
