// Divergent control flow: switches, loops left and continued at different times, early returns, goto, nested conditions, uniform branches.
#include "check.h"

// Steps of the Collatz sequence until 1, at most `limit`.
extern "C" __global__ void collatz(const unsigned* in, int* steps, int limit, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long v = in[i];
    int k = 0;
    while (v != 1) {
        if (k == limit) {
            k = -1;
            break;
        }
        v = v & 1 ? 3 * v + 1 : v / 2;
        k++;
    }
    steps[i] = k;
}

extern "C" __global__ void switches(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = in[i], r = 0;
    switch (v % 12) {
    case 0: r = v + 1; break;
    case 1: r = v * 3; [[fallthrough]];
    case 2: r += 7; break;
    case 3:
    case 4: r = -v; break;
    case 5: out[i] = 12345; return;
    case 6: {
        for (int k = 0; k < v % 5; k++) r += k * v;
        break;
    }
    case 9: r = v / 3; break;
    case 11: r = v ^ 0x55; break;
    default: r = 1000 + v;
    }
    out[i] = r;
}

// Counts primes below in[i] by trial division, with continue and break in two loops.
extern "C" __global__ void primes_below(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int count = 0;
    for (int p = 2; p < in[i]; p++) {
        if (p > 2 && p % 2 == 0) continue;
        bool prime = true;
        for (int d = 3; d * d <= p; d += 2)
            if (p % d == 0) {
                prime = false;
                break;
            }
        if (prime) count++;
    }
    out[i] = count;
}

extern "C" __global__ void state_machine(const unsigned char* text, int length, int* words, int* digits) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, w = 0, d = 0, p = i % 7;
between:
    if (p >= length) goto done;
    if (text[p] == ' ') {
        p++;
        goto between;
    }
    w++;
inside:
    if (p >= length) goto done;
    if (text[p] == ' ') goto between;
    if (text[p] >= '0' && text[p] <= '9') d++;
    p += 1 + (i & 1);
    goto inside;
done:
    words[i] = w;
    digits[i] = d;
}

// Waves of a block go different ways and meet at barriers; whole waves leave early.
extern "C" __global__ void waves_apart(const int* in, int* out, int waves_that_stay) {
    __shared__ int sums[16];
    int wave = threadIdx.x / 64;
    if (threadIdx.x < 16) sums[threadIdx.x] = 0;
    __syncthreads();
    if (wave >= waves_that_stay) return;
    int v = in[threadIdx.x];
    if (wave & 1) {
        for (int k = 0; k < wave; k++) v = v * 3 + k;
    } else {
        v = v > 0 ? v - wave : v + wave;
    }
    atomicAdd(&sums[wave], v);
    __syncthreads();
    int total = 0;
    for (int k = 0; k < waves_that_stay; k++) total += sums[k];
    out[threadIdx.x] = total + v;
}

// Conditions combined in many ways.
extern "C" __global__ void conditions(const int* in, int* out, int a, int b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = in[i], r = 0;
    if ((v > a && v < b) || v == -b) r |= 1;
    if (!(v & 4) && (v & 2 || v < 0)) r |= 2;
    if (a < b ? v > a : v < b) r |= 4;
    if (v != a) {
        if (v > 10) {
            if (v % 3 == 0) r |= 8;
            else if (v % 5 == 0) r |= 16;
            else r |= 32;
        } else if (v < -10) r |= 64;
    } else r |= 128;
    do {
        r += 256;
        v >>= 1;
    } while (v > 3);
    out[i] = r;
}

int main() {
    check::begin("control_flow");
    check::Rng rng(25);
    const int n = 600;
    {
        std::vector<unsigned> in(n);
        std::vector<int> want(n);
        for (int i = 0; i < n; i++) {
            in[i] = 1 + rng.below(i % 4 ? 100 : 100000);
            unsigned long long v = in[i];
            for (want[i] = 0; v != 1 && want[i] < 90; want[i]++) v = v & 1 ? 3 * v + 1 : v / 2;
            if (v != 1) want[i] = -1;
        }
        DeviceArray<unsigned> din(in);
        DeviceArray<int> out(n);
        collatz<<<(n + 127) / 128, 128>>>(din.get(), out.get(), 90, n);
        HIP_CHECK(hipGetLastError());
        check::equal("collatz", out.download(), want);
    }
    {
        std::vector<int> in(n), want(n);
        for (int i = 0; i < n; i++) {
            int v = in[i] = static_cast<int>(rng.below(100000)), m = v % 12, r = 1000 + v;
            if (m == 0) r = v + 1;
            if (m == 1) r = v * 3 + 7;
            if (m == 2) r = 7;
            if (m == 3 || m == 4) r = -v;
            if (m == 5) r = 12345;
            if (m == 6) {
                r = 0;
                for (int k = 0; k < v % 5; k++) r += k * v;
            }
            if (m == 9) r = v / 3;
            if (m == 11) r = v ^ 0x55;
            want[i] = r;
        }
        DeviceArray<int> din(in), out(n);
        switches<<<(n + 255) / 256, 256>>>(din.get(), out.get(), n);
        HIP_CHECK(hipGetLastError());
        check::equal("switch", out.download(), want);
    }
    {
        std::vector<int> in(128), want(128);
        for (int i = 0; i < 128; i++) {
            in[i] = static_cast<int>(rng.below(200));
            for (int p = 2; p < in[i]; p++) {
                bool prime = true;
                for (int d = 2; d < p; d++) prime = prime && p % d != 0;
                want[i] += prime;
            }
        }
        DeviceArray<int> din(in), out(128);
        primes_below<<<2, 64>>>(din.get(), out.get(), 128);
        HIP_CHECK(hipGetLastError());
        check::equal("primes", out.download(), want);
    }
    {
        const std::string text = "one 2 three45  six 7890 x  end 1";
        std::vector<unsigned char> bytes(text.begin(), text.end());
        const int length = static_cast<int>(text.size());
        std::vector<int> words(64), digits(64);
        for (int i = 0; i < 64; i++) {
            bool inside = false;
            for (int p = i % 7; p < length;) {
                if (text[p] == ' ') {
                    inside = false;
                    p++;
                    continue;
                }
                if (!inside) words[i]++;
                inside = true;
                if (text[p] >= '0' && text[p] <= '9') digits[i]++;
                p += 1 + (i & 1);
            }
        }
        DeviceArray<unsigned char> dtext(bytes);
        DeviceArray<int> dwords(64), ddigits(64);
        state_machine<<<1, 64>>>(dtext.get(), length, dwords.get(), ddigits.get());
        HIP_CHECK(hipGetLastError());
        check::equal("words", dwords.download(), words);
        check::equal("digits", ddigits.download(), digits);
    }
    for (int stay : {8, 5, 1}) {
        std::vector<int> in(512), want(512, -1), v(512);
        int total = 0;
        for (int i = 0; i < 512; i++) {
            in[i] = v[i] = static_cast<int>(rng.below(200)) - 100;
            int wave = i / 64;
            if (wave & 1)
                for (int k = 0; k < wave; k++) v[i] = v[i] * 3 + k;
            else v[i] = v[i] > 0 ? v[i] - wave : v[i] + wave;
            if (wave < stay) total += v[i];
        }
        for (int i = 0; i < 64 * stay; i++) want[i] = total + v[i];
        DeviceArray<int> din(in), out(512);
        out.fill_bytes(0xff);
        waves_apart<<<1, 512>>>(din.get(), out.get(), stay);
        HIP_CHECK(hipGetLastError());
        check::equal("waves apart", out.download(), want);
    }
    for (int swapped = 0; swapped < 2; swapped++) {
        int a = swapped ? 40 : -7, b = swapped ? -12 : 55;
        std::vector<int> in(n), want(n);
        for (int i = 0; i < n; i++) {
            int v = in[i] = static_cast<int>(rng.below(140)) - 70, r = 0;
            if ((v > a && v < b) || v == -b) r |= 1;
            if (!(v & 4) && (v & 2 || v < 0)) r |= 2;
            if (a < b ? v > a : v < b) r |= 4;
            if (v == a) r |= 128;
            else if (v > 10) r |= v % 3 == 0 ? 8 : v % 5 == 0 ? 16 : 32;
            else if (v < -10) r |= 64;
            r += 256;
            for (v >>= 1; v > 3; v >>= 1) r += 256;
            want[i] = r;
        }
        DeviceArray<int> din(in), out(n);
        conditions<<<(n + 63) / 64, 64>>>(din.get(), out.get(), a, b, n);
        HIP_CHECK(hipGetLastError());
        check::equal("conditions", out.download(), want);
    }
    return check::finish();
}
