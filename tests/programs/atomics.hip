// Atomic operations of 32 and 64 bits, f32 and f64, in global memory and in LDS; loops of compare-and-swap; returned old values; a lock.
#include "check.h"

// One word for each operation, hit by every thread.
extern "C" __global__ void atomics_u32(unsigned* words, const unsigned* values) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, v = values[i];
    atomicAdd(&words[0], v);
    atomicSub(&words[1], v);
    atomicMin(&words[2], v);
    atomicMax(&words[3], v);
    atomicAnd(&words[4], v | 0xff00ff00u);
    atomicOr(&words[5], v & 0x01020304u);
    atomicXor(&words[6], v);
    atomicInc(&words[7], 99);
    atomicDec(&words[8], 77);
    atomicCAS(&words[9], 5u, 17u);
    atomicExch(&words[10], 4242u);
}

extern "C" __global__ void atomics_i32(int* words, const int* values) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicMin(&words[0], values[i]);
    atomicMax(&words[1], values[i]);
    atomicAdd(&words[2], values[i]);
}

extern "C" __global__ void atomics_u64(unsigned long long* words, const unsigned long long* values) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long v = values[i];
    atomicAdd(&words[0], v);
    atomicMin(&words[1], v);
    atomicMax(&words[2], v);
    atomicAnd(&words[3], v | 0xff00ff00ff00ff00ull);
    atomicOr(&words[4], v & 0x0102030401020304ull);
    atomicXor(&words[5], v);
    atomicCAS(&words[6], 5ull, 17ull);
    atomicExch(&words[7], 0x123456789abcdef0ull);
}

// Every thread gets a ticket that nobody else gets.
extern "C" __global__ void tickets(unsigned* next, unsigned long long* next64, unsigned* owner, unsigned* owner64) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    owner[atomicAdd(next, 1u)] = i;
    owner64[atomicAdd(next64, 1ull)] = i;
}

extern "C" __global__ void atomics_float(float* f, double* d, const float* values) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(f, values[i]);
    atomicAdd(d, static_cast<double>(values[i]));
    unsafeAtomicAdd(f + 1, values[i]);
    unsafeAtomicAdd(d + 1, static_cast<double>(values[i]) * 2);
}

// Products and maxima of floats by compare-and-swap.
extern "C" __global__ void cas_loops(unsigned* high, unsigned long long* product, const float* values) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned old = *high, assumed;
    do {
        assumed = old;
        if (__uint_as_float(assumed) >= values[i]) break;
        old = atomicCAS(high, assumed, __float_as_uint(values[i]));
    } while (old != assumed);
    unsigned long long old64 = *product, assumed64;
    do {
        assumed64 = old64;
        old64 = atomicCAS(product, assumed64, static_cast<unsigned long long>(__double_as_longlong(__longlong_as_double(static_cast<long long>(assumed64)) * (1 + 1e-3 * (i & 7)))));
    } while (old64 != assumed64);
}

extern "C" __global__ void atomics_lds(unsigned* out, unsigned long long* out64, float* outf, double* outd, const unsigned* values) {
    __shared__ unsigned words[6];
    __shared__ unsigned long long wide[4];
    __shared__ float f;
    __shared__ double d;
    if (threadIdx.x < 6) words[threadIdx.x] = threadIdx.x == 1 ? ~0u : 0;
    if (threadIdx.x < 4) wide[threadIdx.x] = threadIdx.x == 1 ? ~0ull : 0;
    if (threadIdx.x == 0) {
        f = 0;
        d = 0;
    }
    __syncthreads();
    unsigned v = values[blockIdx.x * blockDim.x + threadIdx.x];
    atomicAdd(&words[0], v);
    atomicMin(&words[1], v);
    atomicMax(&words[2], v);
    atomicXor(&words[3], v);
    atomicOr(&words[4], 1u << (v & 31));
    if (atomicCAS(&words[5], 0u, v | 1) == 0) atomicAdd(&wide[3], 1ull); // exactly one thread is first
    atomicAdd(&wide[0], static_cast<unsigned long long>(v) << 20);
    atomicMin(&wide[1], static_cast<unsigned long long>(v) << 16);
    atomicMax(&wide[2], static_cast<unsigned long long>(v) << 16);
    atomicAdd(&f, static_cast<float>(v >> 24));
    atomicAdd(&d, static_cast<double>(v));
    __syncthreads();
    if (threadIdx.x < 5) out[blockIdx.x * 5 + threadIdx.x] = words[threadIdx.x];
    if (threadIdx.x < 4) out64[blockIdx.x * 4 + threadIdx.x] = wide[threadIdx.x];
    if (threadIdx.x == 0) {
        outf[blockIdx.x] = f;
        outd[blockIdx.x] = d;
    }
}

// One lane of each block at a time changes a value that is not atomic.
extern "C" __global__ void with_lock(int* lock, volatile int* value) {
    if (threadIdx.x != 0) return;
    while (atomicCAS(lock, 0, 1) != 0) __builtin_amdgcn_s_sleep(1);
    __threadfence();
    *value = *value * 3 % 1009 + 1;
    __threadfence();
    atomicExch(lock, 0);
}

int main() {
    check::begin("atomics");
    check::Rng rng(16);
    const unsigned blocks = 5, threads = 128, n = blocks * threads;
    std::vector<unsigned> v = rng.bits<unsigned>(n);
    {
        std::vector<unsigned> start = {0, 0, ~0u, 0, ~0u, 0, 0, 0, 50, 5, 1}, want = start;
        for (unsigned x : v) {
            want[0] += x, want[1] -= x, want[2] = std::min(want[2], x), want[3] = std::max(want[3], x);
            want[4] &= x | 0xff00ff00u, want[5] |= x & 0x01020304u, want[6] ^= x;
            want[7] = want[7] >= 99 ? 0 : want[7] + 1;
            want[8] = want[8] == 0 || want[8] > 77 ? 77 : want[8] - 1;
        }
        want[9] = 17, want[10] = 4242;
        DeviceArray<unsigned> words(start), values(v);
        atomics_u32<<<blocks, threads>>>(words.get(), values.get());
        HIP_CHECK(hipGetLastError());
        check::equal("u32", words.download(), want);

        std::vector<int> s(v.begin(), v.end()), starts = {INT32_MAX, INT32_MIN, 7}, wants = {*std::min_element(s.begin(), s.end()), *std::max_element(s.begin(), s.end()), 0};
        unsigned sum = 7;
        for (unsigned x : v) sum += x;
        wants[2] = static_cast<int>(sum);
        DeviceArray<int> iwords(starts), ivalues(s);
        atomics_i32<<<blocks, threads>>>(iwords.get(), ivalues.get());
        HIP_CHECK(hipGetLastError());
        check::equal("i32", iwords.download(), wants);
    }
    {
        std::vector<unsigned long long> v64 = rng.bits<unsigned long long>(n), start = {1, ~0ull, 0, ~0ull, 0, 0, 5, 1}, want = start;
        for (unsigned long long x : v64) {
            want[0] += x, want[1] = std::min(want[1], x), want[2] = std::max(want[2], x);
            want[3] &= x | 0xff00ff00ff00ff00ull, want[4] |= x & 0x0102030401020304ull, want[5] ^= x;
        }
        want[6] = 17, want[7] = 0x123456789abcdef0ull;
        DeviceArray<unsigned long long> words(start), values(v64);
        atomics_u64<<<blocks, threads>>>(words.get(), values.get());
        HIP_CHECK(hipGetLastError());
        check::equal("u64", words.download(), want);
    }
    {
        DeviceArray<unsigned> next(1), owner(n), owner64(n);
        DeviceArray<unsigned long long> next64(1);
        next.fill_bytes(0), next64.fill_bytes(0), owner.fill_bytes(0xff), owner64.fill_bytes(0xff);
        tickets<<<blocks, threads>>>(next.get(), next64.get(), owner.get(), owner64.get());
        HIP_CHECK(hipGetLastError());
        std::vector<unsigned> all(n), a = owner.download(), b = owner64.download();
        for (unsigned i = 0; i < n; i++) all[i] = i;
        std::sort(a.begin(), a.end()), std::sort(b.begin(), b.end());
        check::equal("tickets", a, all);
        check::equal("64-bit tickets", b, all);
    }
    {
        std::vector<float> f(n);
        double sum = 0, high = 0, product = 1;
        for (unsigned i = 0; i < n; i++) {
            f[i] = static_cast<float>(rng.below(1000)) * 0.25f; // sums are exact
            sum += f[i], high = std::max<double>(high, f[i]), product *= 1 + 1e-3 * (i & 7);
        }
        DeviceArray<float> values(f), df(2);
        DeviceArray<double> dd(2);
        df.fill_bytes(0), dd.fill_bytes(0);
        atomics_float<<<blocks, threads>>>(df.get(), dd.get(), values.get());
        HIP_CHECK(hipGetLastError());
        check::equal("f32 sums", df.download(), {static_cast<float>(sum), static_cast<float>(sum)});
        check::equal("f64 sums", dd.download(), {sum, 2 * sum});

        DeviceArray<unsigned> dhigh(1);
        DeviceArray<double> dproduct(std::vector<double>{1.0});
        dhigh.fill_bytes(0);
        cas_loops<<<blocks, threads>>>(dhigh.get(), reinterpret_cast<unsigned long long*>(dproduct.get()), values.get());
        HIP_CHECK(hipGetLastError());
        float got;
        unsigned bits = dhigh.download()[0];
        std::memcpy(&got, &bits, sizeof got);
        check::equal("maximum by CAS", std::vector<float>{got}, {static_cast<float>(high)});
        check::near("product by CAS", dproduct.download(), std::vector<double>{product}, 1e-12);
    }
    {
        std::vector<unsigned> want(5 * blocks);
        std::vector<unsigned long long> want64(4 * blocks);
        std::vector<float> wantf(blocks);
        std::vector<double> wantd(blocks);
        for (unsigned b = 0; b < blocks; b++) {
            unsigned* w = &want[5 * b];
            unsigned long long* q = &want64[4 * b];
            w[1] = ~0u, q[1] = ~0ull, q[3] = 1;
            for (unsigned t = 0; t < threads; t++) {
                unsigned x = v[b * threads + t];
                w[0] += x, w[1] = std::min(w[1], x), w[2] = std::max(w[2], x), w[3] ^= x, w[4] |= 1u << (x & 31);
                unsigned long long wide = static_cast<unsigned long long>(x) << 16;
                q[0] += static_cast<unsigned long long>(x) << 20, q[1] = std::min(q[1], wide), q[2] = std::max(q[2], wide);
                wantf[b] += static_cast<float>(x >> 24), wantd[b] += x;
            }
        }
        DeviceArray<unsigned> values(v), out(want.size());
        DeviceArray<unsigned long long> out64(want64.size());
        DeviceArray<float> outf(blocks);
        DeviceArray<double> outd(blocks);
        atomics_lds<<<blocks, threads>>>(out.get(), out64.get(), outf.get(), outd.get(), values.get());
        HIP_CHECK(hipGetLastError());
        check::equal("LDS u32", out.download(), want);
        check::equal("LDS u64", out64.download(), want64);
        check::equal("LDS f32", outf.download(), wantf);
        check::equal("LDS f64", outd.download(), wantd);
    }
    {
        DeviceArray<int> lock(1), value(1);
        lock.fill_bytes(0), value.fill_bytes(0);
        with_lock<<<40, 64>>>(lock.get(), value.get());
        HIP_CHECK(hipGetLastError());
        int want = 0;
        for (int i = 0; i < 40; i++) want = want * 3 % 1009 + 1;
        check::equal("under a lock", value.download(), {want});
    }
    return check::finish();
}
