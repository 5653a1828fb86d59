// 32-bit integers: division by variables and constants, high products, bit counting, fields, rotations, minimum, saturation, carries.
#include "check.h"

#define RESULTS 24

extern "C" __global__ void arithmetic_u32(const unsigned* a, const unsigned* b, unsigned* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = a[i], y = b[i];
    unsigned* r = out + RESULTS * i;
    r[0] = y ? x / y : 1;
    r[1] = y ? x % y : 2;
    r[2] = x / 7;
    r[3] = x % 1000;
    r[4] = __umulhi(x, y);
    r[5] = x * y;
    r[6] = __popc(x);
    r[7] = __clz(x);
    r[8] = __ffs(x);
    r[9] = __brev(x);
    r[10] = x << (y & 31) | x >> (-y & 31);
    r[11] = (x >> 5) & 0x7ff;
    r[12] = (x & 0x00ff00ff) | (y & 0xff00ff00);
    r[13] = min(x, y);
    r[14] = max(x, y);
    r[15] = __umul24(x, y);
    r[16] = __usad(x, y, 5u);
    r[17] = __uhadd(x, y);
    r[18] = x + y < x ? 0xffffffffu : x + y;
    r[19] = __funnelshift_l(x, y, y >> 27);
    r[20] = x ^ (x >> 13) ^ (y << 7);
    r[21] = (x + 3) * (y - 5) + (x & ~y);
    r[22] = x == y || x < 5 ? x : y;
    r[23] = static_cast<unsigned>((static_cast<unsigned long long>(x) * y + 12345) >> 17);
}

extern "C" __global__ void arithmetic_i32(const int* a, const int* b, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = a[i], y = b[i];
    if (x == INT32_MIN && y == -1) y = 1;
    int* r = out + RESULTS * i;
    r[0] = y ? x / y : 1;
    r[1] = y ? x % y : 2;
    r[2] = x / -7;
    r[3] = x % 1000;
    r[4] = __mulhi(x, y);
    r[5] = x >> (y & 31);
    r[6] = abs(x == INT32_MIN ? 0 : x);
    r[7] = min(x, y);
    r[8] = max(x, y);
    r[9] = min(max(x, -1000), 1000);
    r[10] = __mul24(x, y);
    r[11] = __hadd(x, y);
    r[12] = (x << 9) >> 20; // sign-extended field
    r[13] = static_cast<signed char>(x) + static_cast<short>(y);
    r[14] = x < 0 ? -1 : x > 0;
    r[15] = x / 16 + y / 1024;
    long long wide = static_cast<long long>(x) * y;
    r[16] = wide > INT32_MAX ? INT32_MAX : wide < INT32_MIN ? INT32_MIN : static_cast<int>(wide);
    r[17] = static_cast<int>(wide >> 21);
    r[18] = static_cast<int>(__sad(x >> 2, y >> 2, 9u)); // the difference must fit
    r[19] = (x > y) + (x >= 0) * 2 + (y != 0) * 4;
    r[20] = static_cast<int>(static_cast<long long>(x) - y >= 0);
    r[21] = x & -x;
    r[22] = __clz(~x) + __popc(y);
    r[23] = x ^ y;
}

// 256-bit additions and subtractions, limb by limb.
extern "C" __global__ void wide_add(const unsigned* a, const unsigned* b, unsigned* sum, unsigned* difference, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned carry = 0, borrow = 0;
    for (int k = 0; k < 8; k++) {
        unsigned out;
        sum[8 * i + k] = __builtin_addc(a[8 * i + k], b[8 * i + k], carry, &out);
        carry = out;
        difference[8 * i + k] = __builtin_subc(a[8 * i + k], b[8 * i + k], borrow, &out);
        borrow = out;
    }
}

// SHA-256 of one 64-byte block a thread, without padding: the compression function on the standard start values.
__constant__ unsigned round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74,
    0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d,
    0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e,
    0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5,
    0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

__device__ inline unsigned rotate_right(unsigned v, int n) { return v >> n | v << (32 - n); }

extern "C" __global__ void sha256_blocks(const unsigned* blocks, unsigned* digests, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    unsigned w[64], h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}, s[8];
    for (int i = 0; i < 16; i++) w[i] = __builtin_bswap32(blocks[16 * t + i]);
    for (int i = 16; i < 64; i++) {
        unsigned s0 = rotate_right(w[i - 15], 7) ^ rotate_right(w[i - 15], 18) ^ (w[i - 15] >> 3);
        unsigned s1 = rotate_right(w[i - 2], 17) ^ rotate_right(w[i - 2], 19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    for (int i = 0; i < 8; i++) s[i] = h[i];
    for (int i = 0; i < 64; i++) {
        unsigned s1 = rotate_right(s[4], 6) ^ rotate_right(s[4], 11) ^ rotate_right(s[4], 25);
        unsigned choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
        unsigned t1 = s[7] + s1 + choice + round_constants[i] + w[i];
        unsigned s0 = rotate_right(s[0], 2) ^ rotate_right(s[0], 13) ^ rotate_right(s[0], 22);
        unsigned majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        for (int k = 7; k > 0; k--) s[k] = s[k - 1];
        s[4] += t1;
        s[0] = t1 + s0 + majority;
    }
    for (int i = 0; i < 8; i++) digests[8 * t + i] = h[i] + s[i];
}

static void reference_u32(unsigned x, unsigned y, unsigned* r) {
    unsigned long long wide = static_cast<unsigned long long>(x) * y;
    r[0] = y ? x / y : 1, r[1] = y ? x % y : 2, r[2] = x / 7, r[3] = x % 1000, r[4] = static_cast<unsigned>(wide >> 32), r[5] = static_cast<unsigned>(wide);
    r[6] = static_cast<unsigned>(__builtin_popcount(x)), r[7] = x ? static_cast<unsigned>(__builtin_clz(x)) : 32, r[8] = static_cast<unsigned>(__builtin_ffs(static_cast<int>(x)));
    r[9] = 0;
    for (int k = 0; k < 32; k++) r[9] |= (x >> k & 1) << (31 - k);
    r[10] = y & 31 ? x << (y & 31) | x >> (32 - (y & 31)) : x;
    r[11] = x >> 5 & 0x7ff, r[12] = (x & 0x00ff00ff) | (y & 0xff00ff00), r[13] = std::min(x, y), r[14] = std::max(x, y), r[15] = (x & 0xffffff) * (y & 0xffffff);
    r[16] = (x > y ? x - y : y - x) + 5, r[17] = static_cast<unsigned>((static_cast<unsigned long long>(x) + y) >> 1);
    r[18] = static_cast<unsigned>(std::min<unsigned long long>(static_cast<unsigned long long>(x) + y, ~0u));
    r[19] = static_cast<unsigned>(((static_cast<unsigned long long>(y) << 32 | x) << (y >> 27)) >> 32);
    r[20] = x ^ (x >> 13) ^ (y << 7), r[21] = (x + 3) * (y - 5) + (x & ~y), r[22] = x == y || x < 5 ? x : y, r[23] = static_cast<unsigned>((wide + 12345) >> 17);
}

static int low24(int v) { return static_cast<int>(static_cast<unsigned>(v) << 8) >> 8; }

static void reference_i32(int x, int y, int* r) {
    if (x == INT32_MIN && y == -1) y = 1;
    long long wide = static_cast<long long>(x) * y;
    r[0] = y ? x / y : 1, r[1] = y ? x % y : 2, r[2] = x / -7, r[3] = x % 1000, r[4] = static_cast<int>(wide >> 32), r[5] = x >> (y & 31), r[6] = x == INT32_MIN ? 0 : std::abs(x);
    r[7] = std::min(x, y), r[8] = std::max(x, y), r[9] = std::clamp(x, -1000, 1000), r[10] = static_cast<int>(static_cast<long long>(low24(x)) * low24(y));
    r[11] = static_cast<int>((static_cast<long long>(x) + y) >> 1), r[12] = static_cast<int>(static_cast<unsigned>(x) << 9) >> 20;
    r[13] = static_cast<signed char>(x) + static_cast<short>(y), r[14] = (x > 0) - (x < 0), r[15] = x / 16 + y / 1024;
    r[16] = static_cast<int>(std::clamp<long long>(wide, INT32_MIN, INT32_MAX)), r[17] = static_cast<int>(wide >> 21);
    r[18] = std::abs((x >> 2) - (y >> 2)) + 9, r[19] = (x > y) + (x >= 0) * 2 + (y != 0) * 4, r[20] = x >= y;
    r[21] = static_cast<int>(static_cast<unsigned>(x) & (0u - static_cast<unsigned>(x)));
    r[22] = (~x ? __builtin_clz(~static_cast<unsigned>(x)) : 32) + __builtin_popcount(static_cast<unsigned>(y)), r[23] = x ^ y;
}

int main() {
    check::begin("integers");
    check::Rng rng(23);
    const int n = 3000;
    std::vector<unsigned> a = rng.bits<unsigned>(n), b = rng.bits<unsigned>(n), want(RESULTS * n);
    for (int i = 0; i < n; i++) a[i] >>= rng.below(32), b[i] >>= rng.below(32);
    const unsigned edges[] = {0, 1, 2, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
    for (int i = 0; i < 49; i++) a[i] = edges[i / 7], b[i] = edges[i % 7];
    for (int i = 49; i < n; i += 3) a[i] = ~a[i];
    for (int i = 50; i < n; i += 5) b[i] = ~b[i];
    {
        for (int i = 0; i < n; i++) reference_u32(a[i], b[i], &want[RESULTS * i]);
        DeviceArray<unsigned> da(a), db(b), dout(want.size());
        arithmetic_u32<<<(n + 255) / 256, 256>>>(da.get(), db.get(), dout.get(), n);
        HIP_CHECK(hipGetLastError());
        check::equal("u32", dout.download(), want);
    }
    {
        std::vector<int> sa(a.begin(), a.end()), sb(b.begin(), b.end()), swant(RESULTS * n);
        for (int i = 0; i < n; i++) reference_i32(sa[i], sb[i], &swant[RESULTS * i]);
        DeviceArray<int> da(sa), db(sb), dout(swant.size());
        arithmetic_i32<<<(n + 255) / 256, 256>>>(da.get(), db.get(), dout.get(), n);
        HIP_CHECK(hipGetLastError());
        check::equal("i32", dout.download(), swant);
    }
    {
        const int numbers = 200;
        std::vector<unsigned> p = rng.bits<unsigned>(8 * numbers), q = rng.bits<unsigned>(8 * numbers), sum(8 * numbers), difference(8 * numbers);
        for (int i = 0; i < 8 * numbers; i += 3) p[i] = ~q[i]; // long carries
        for (int i = 0; i < numbers; i++) {
            unsigned long long carry = 0;
            long long borrow = 0;
            for (int k = 8 * i; k < 8 * i + 8; k++) {
                carry += static_cast<unsigned long long>(p[k]) + q[k];
                sum[k] = static_cast<unsigned>(carry);
                carry >>= 32;
                borrow += static_cast<long long>(p[k]) - q[k];
                difference[k] = static_cast<unsigned>(borrow);
                borrow >>= 32;
            }
        }
        DeviceArray<unsigned> dp(p), dq(q), dsum(8 * numbers), ddifference(8 * numbers);
        wide_add<<<(numbers + 63) / 64, 64>>>(dp.get(), dq.get(), dsum.get(), ddifference.get(), numbers);
        HIP_CHECK(hipGetLastError());
        check::equal("256-bit sum", dsum.download(), sum);
        check::equal("256-bit difference", ddifference.download(), difference);
    }
    {
        // "abc", padded: the published digest; and another block, only for being different from it in every lane.
        const int blocks = 64;
        std::vector<unsigned> data(16 * blocks);
        for (int t = 0; t < blocks; t++) {
            unsigned char* bytes = reinterpret_cast<unsigned char*>(&data[16 * t]);
            std::memcpy(bytes, "abc\x80", 4);
            bytes[63] = 24;
        }
        const unsigned abc[8] = {0xba7816bf, 0x8f01cfea, 0x414140de, 0x5dae2223, 0xb00361a3, 0x96177a9c, 0xb410ff61, 0xf20015ad};
        std::vector<unsigned> digests;
        for (int t = 0; t < blocks; t++) digests.insert(digests.end(), abc, abc + 8);
        DeviceArray<unsigned> ddata(data), ddigests(8 * blocks);
        sha256_blocks<<<1, blocks>>>(ddata.get(), ddigests.get(), blocks);
        HIP_CHECK(hipGetLastError());
        check::equal("SHA-256", ddigests.download(), digests);
    }
    return check::finish();
}
