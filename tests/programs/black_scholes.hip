// Prices of options by the Black-Scholes formula (log, exp, sqrt, erf) in f32 and f64, and by simulation with a counter-based generator.
#include "check.h"

extern "C" __global__ void prices_f32(const float* spot, const float* strike, const float* years, float* call, float* put, float rate, float volatility, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float root = sqrtf(years[i]);
    float d1 = (logf(spot[i] / strike[i]) + (rate + 0.5f * volatility * volatility) * years[i]) / (volatility * root), d2 = d1 - volatility * root;
    float n1 = 0.5f * erfcf(-d1 * 0.70710678f), n2 = 0.5f * erfcf(-d2 * 0.70710678f), discount = expf(-rate * years[i]);
    call[i] = spot[i] * n1 - strike[i] * discount * n2;
    put[i] = strike[i] * discount * (1.0f - n2) - spot[i] * (1.0f - n1);
}

extern "C" __global__ void prices_f64(const double* spot, const double* strike, const double* years, double* call, double rate, double volatility, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double root = sqrt(years[i]);
    double d1 = (log(spot[i] / strike[i]) + (rate + 0.5 * volatility * volatility) * years[i]) / (volatility * root), d2 = d1 - volatility * root;
    call[i] = spot[i] * normcdf(d1) - strike[i] * exp(-rate * years[i]) * normcdf(d2);
}

// Philox-like rounds: two 32-bit words from a counter and a key.
__host__ __device__ inline void random_pair(unsigned counter, unsigned key, unsigned& a, unsigned& b) {
    a = counter;
    b = 0x12345678u;
    for (int round = 0; round < 10; round++) {
        unsigned long long product = static_cast<unsigned long long>(a) * 0xd256d193u;
        a = static_cast<unsigned>(product >> 32) ^ key ^ b;
        b = static_cast<unsigned>(product);
        key += 0x9e3779b9u;
    }
}

// Counts points of the unit square inside the circle, exactly, in integers.
extern "C" __global__ void points_inside(unsigned key, unsigned per_thread, unsigned long long* inside) {
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x, count = 0;
    for (unsigned k = 0; k < per_thread; k++) {
        unsigned a, b;
        random_pair(t * per_thread + k, key, a, b);
        unsigned long long x = a >> 1, y = b >> 1;
        if (x * x + y * y < 1ull << 62) count++;
    }
    atomicAdd(inside, static_cast<unsigned long long>(count));
}

int main() {
    check::begin("black_scholes");
    check::Rng rng(30);
    const int n = 1000;
    const double rate = 0.02, volatility = 0.3;
    std::vector<double> spot = rng.reals<double>(n, 5, 30), strike = rng.reals<double>(n, 1, 100), years = rng.reals<double>(n, 0.25, 10), call(n), put(n);
    for (int i = 0; i < n; i++) {
        double root = std::sqrt(years[i]), d1 = (std::log(spot[i] / strike[i]) + (rate + 0.5 * volatility * volatility) * years[i]) / (volatility * root), d2 = d1 - volatility * root;
        double n1 = 0.5 * std::erfc(-d1 * M_SQRT1_2), n2 = 0.5 * std::erfc(-d2 * M_SQRT1_2), discount = std::exp(-rate * years[i]);
        call[i] = spot[i] * n1 - strike[i] * discount * n2;
        put[i] = strike[i] * discount * (1 - n2) - spot[i] * (1 - n1);
    }
    std::vector<float> spot32(spot.begin(), spot.end()), strike32(strike.begin(), strike.end()), years32(years.begin(), years.end());
    DeviceArray<float> a(spot32), b(strike32), c(years32), calls(n), puts(n);
    prices_f32<<<(n + 127) / 128, 128>>>(a.get(), b.get(), c.get(), calls.get(), puts.get(), static_cast<float>(rate), static_cast<float>(volatility), n);
    HIP_CHECK(hipGetLastError());
    check::near("calls in f32", calls.download(), call, 1e-5, 5e-5);
    check::near("puts in f32", puts.download(), put, 1e-5, 5e-5);
    DeviceArray<double> a64(spot), b64(strike), c64(years), calls64(n);
    prices_f64<<<(n + 127) / 128, 128>>>(a64.get(), b64.get(), c64.get(), calls64.get(), rate, volatility, n);
    HIP_CHECK(hipGetLastError());
    check::near("calls in f64", calls64.download(), call, 1e-12, 1e-13);

    const unsigned threads = 1024, per_thread = 20, key = 2024;
    unsigned long long want = 0;
    for (unsigned i = 0; i < threads * per_thread; i++) {
        unsigned x, y;
        random_pair(i, key, x, y);
        unsigned long long p = x >> 1, q = y >> 1;
        want += p * p + q * q < 1ull << 62;
    }
    DeviceArray<unsigned long long> inside(1);
    inside.fill_bytes(0);
    points_inside<<<threads / 256, 256>>>(key, per_thread, inside.get());
    HIP_CHECK(hipGetLastError());
    check::equal("points inside", inside.download(), {want});
    double pi = 4.0 * static_cast<double>(want) / (threads * per_thread);
    EXPECT(pi > 3.08 && pi < 3.20);
    return check::finish();
}
