// 64-bit integers: mixing hashes, rotations, high products, division and remainder, shifts by variable amounts.
#include "check.h"

#define BOTH __host__ __device__

BOTH inline unsigned long long mix(unsigned long long z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

BOTH inline unsigned long long rotate(unsigned long long v, int count) { return (v << (count & 63)) | (v >> (-count & 63)); }

// FNV-1a of each thread's `length` bytes, mixed with the index.
extern "C" __global__ void hash_bytes(const unsigned char* data, unsigned long long* out, int n, int length) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long hash = 0xcbf29ce484222325ull;
    for (int j = 0; j < length; j++) {
        hash ^= data[i * length + j];
        hash *= 0x100000001b3ull;
    }
    out[i] = mix(hash + static_cast<unsigned long long>(i));
}

// Eight results for each pair of inputs.
extern "C" __global__ void arithmetic_u64(const unsigned long long* a, const unsigned long long* b, unsigned long long* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long x = a[i], y = b[i] | 1;
    int shift = static_cast<int>(y >> 3) & 63;
    unsigned long long* r = out + 8 * i;
    r[0] = x / y;
    r[1] = x % y;
    r[2] = __umul64hi(x, y);
    r[3] = rotate(x, shift);
    r[4] = x << shift;
    r[5] = x >> shift;
    r[6] = x - y;
    r[7] = x > y ? x ^ y : ~x & y;
}

extern "C" __global__ void arithmetic_i64(const long long* a, const long long* b, long long* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    long long x = a[i], y = b[i] | 1;
    if (y == -1) y = 3;
    int shift = static_cast<int>(y >> 5) & 63;
    long long* r = out + 8 * i;
    r[0] = x / y;
    r[1] = x % y;
    r[2] = __mul64hi(x, y);
    r[3] = x >> shift;
    r[4] = x < y ? x : y;
    r[5] = static_cast<long long>(__popcll(x)) * 1000 + __clzll(x) * 10 + __ffsll(static_cast<unsigned long long>(y));
    r[6] = static_cast<long long>(__brevll(static_cast<unsigned long long>(x)));
    r[7] = static_cast<int>(x) * static_cast<long long>(static_cast<int>(y)); // 32 x 32 -> 64
}

int main() {
    check::begin("hash64");
    check::Rng rng(11);
    const int n = 3000, length = 20;
    std::vector<unsigned char> data = rng.bits<unsigned char>(n * length);
    std::vector<unsigned long long> want(n);
    for (int i = 0; i < n; i++) {
        unsigned long long hash = 0xcbf29ce484222325ull;
        for (int j = 0; j < length; j++) hash = (hash ^ data[i * length + j]) * 0x100000001b3ull;
        want[i] = mix(hash + i);
    }
    DeviceArray<unsigned char> ddata(data);
    DeviceArray<unsigned long long> dout(n);
    hash_bytes<<<(n + 127) / 128, 128>>>(ddata.get(), dout.get(), n, length);
    HIP_CHECK(hipGetLastError());
    check::equal("hash", dout.download(), want);

    std::vector<unsigned long long> a = rng.bits<unsigned long long>(n), b = rng.bits<unsigned long long>(n);
    for (int i = 0; i < n; i++) { // all magnitudes
        a[i] >>= rng.below(64);
        b[i] >>= rng.below(64);
    }
    a[0] = ~0ull, b[0] = 1, a[1] = 0, b[1] = ~0ull, a[2] = 1ull << 63, b[2] = 3;
    std::vector<unsigned long long> wantu(8 * n);
    std::vector<long long> wanti(8 * n), ai(a.begin(), a.end()), bi(b.begin(), b.end());
    for (int i = 0; i < n; i++)
        if (i & 1) ai[i] = static_cast<long long>(~static_cast<unsigned long long>(ai[i]));
    for (int i = 0; i < n; i++) {
        unsigned long long x = a[i], y = b[i] | 1, *r = &wantu[8 * i];
        int shift = static_cast<int>(y >> 3) & 63;
        r[0] = x / y, r[1] = x % y, r[2] = static_cast<unsigned long long>((static_cast<unsigned __int128>(x) * y) >> 64);
        r[3] = rotate(x, shift), r[4] = x << shift, r[5] = x >> shift, r[6] = x - y, r[7] = x > y ? x ^ y : ~x & y;
        long long p = ai[i], q = bi[i] | 1, *s = &wanti[8 * i];
        if (q == -1) q = 3;
        unsigned long long u = static_cast<unsigned long long>(p), reversed = 0;
        for (int k = 0; k < 64; k++) reversed |= ((u >> k) & 1) << (63 - k);
        shift = static_cast<int>(q >> 5) & 63;
        s[0] = p / q, s[1] = p % q, s[2] = static_cast<long long>((static_cast<__int128>(p) * q) >> 64), s[3] = p >> shift, s[4] = std::min(p, q);
        s[5] = __builtin_popcountll(u) * 1000ll + (u ? __builtin_clzll(u) : 64) * 10 + __builtin_ffsll(q);
        s[6] = static_cast<long long>(reversed);
        s[7] = static_cast<long long>(static_cast<int>(p)) * static_cast<int>(q);
    }
    DeviceArray<unsigned long long> da(a), db(b), doutu(8 * n);
    arithmetic_u64<<<(n + 255) / 256, 256>>>(da.get(), db.get(), doutu.get(), n);
    HIP_CHECK(hipGetLastError());
    check::equal("u64", doutu.download(), wantu);
    DeviceArray<long long> dai(ai), dbi(bi), douti(8 * n);
    arithmetic_i64<<<(n + 255) / 256, 256>>>(dai.get(), dbi.get(), douti.get(), n);
    HIP_CHECK(hipGetLastError());
    check::equal("i64", douti.download(), wanti);
    return check::finish();
}
