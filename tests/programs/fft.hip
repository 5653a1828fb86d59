// Radix-2 transforms of 256 complex values a block in LDS (f32, sincosf) and of 1024 values with a launch for each stage (f64, a table).
#include "check.h"

struct Complex32 {
    float re, im;
};

extern "C" __global__ void fft_block(Complex32* data) {
    __shared__ float re[256], im[256];
    unsigned t = threadIdx.x; // 128 threads
    Complex32* block = data + blockIdx.x * 256;
    for (unsigned i = t; i < 256; i += 128) {
        unsigned to = __brev(i) >> 24;
        re[to] = block[i].re;
        im[to] = block[i].im;
    }
    __syncthreads();
    for (unsigned half = 1; half < 256; half *= 2) {
        unsigned k = t & (half - 1), a = 2 * t - k, b = a + half;
        float s, c;
        sincosf(-3.14159265358979f * static_cast<float>(k) / static_cast<float>(half), &s, &c);
        float x = re[b] * c - im[b] * s, y = re[b] * s + im[b] * c, p = re[a], q = im[a];
        re[a] = p + x;
        im[a] = q + y;
        re[b] = p - x;
        im[b] = q - y;
        __syncthreads();
    }
    for (unsigned i = t; i < 256; i += 128) block[i] = Complex32{re[i], im[i]};
}

extern "C" __global__ void bit_reverse(const double2* in, double2* out, unsigned bits) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[__brev(i) >> (32 - bits)] = in[i];
}

// One stage in place; roots[k] = exp(-2 pi i k / n).
extern "C" __global__ void fft_stage(double2* data, const double2* roots, unsigned half, unsigned n) {
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x, k = t & (half - 1), a = 2 * t - k, b = a + half;
    double2 w = roots[k * (n / 2 / half)], p = data[a], q = data[b];
    double2 x = make_double2(q.x * w.x - q.y * w.y, q.x * w.y + q.y * w.x);
    data[a] = make_double2(p.x + x.x, p.y + x.y);
    data[b] = make_double2(p.x - x.x, p.y - x.y);
}

// The definition, in f64, flattened to re, im, re, im ...
static std::vector<double> transform(const std::vector<double>& in) {
    size_t n = in.size() / 2;
    std::vector<double> out(2 * n), c(n), s(n);
    for (size_t k = 0; k < n; k++) c[k] = std::cos(-2 * M_PI * static_cast<double>(k) / static_cast<double>(n)), s[k] = std::sin(-2 * M_PI * static_cast<double>(k) / static_cast<double>(n));
    for (size_t f = 0; f < n; f++)
        for (size_t i = 0; i < n; i++) {
            size_t k = f * i % n;
            out[2 * f] += in[2 * i] * c[k] - in[2 * i + 1] * s[k];
            out[2 * f + 1] += in[2 * i] * s[k] + in[2 * i + 1] * c[k];
        }
    return out;
}

int main() {
    check::begin("fft");
    check::Rng rng(29);
    {
        const int blocks = 4;
        std::vector<float> in = rng.reals<float>(2 * 256 * blocks, -1, 1);
        std::vector<double> want;
        for (int b = 0; b < blocks; b++) {
            std::vector<double> part = transform(std::vector<double>(in.begin() + 512 * b, in.begin() + 512 * (b + 1)));
            want.insert(want.end(), part.begin(), part.end());
        }
        DeviceArray<float> data(in);
        fft_block<<<blocks, 128>>>(reinterpret_cast<Complex32*>(data.get()));
        HIP_CHECK(hipGetLastError());
        check::near("f32", data.download(), want, 1e-5, 5e-5);
    }
    {
        const unsigned n = 1024, bits = 10;
        std::vector<double> in = rng.reals<double>(2 * n, -1, 1), roots;
        for (unsigned k = 0; k < n; k++) roots.insert(roots.end(), {std::cos(-2 * M_PI * k / n), std::sin(-2 * M_PI * k / n)});
        DeviceArray<double> din(in), data(2 * n), droots(roots);
        double2* values = reinterpret_cast<double2*>(data.get());
        bit_reverse<<<n / 128, 128>>>(reinterpret_cast<const double2*>(din.get()), values, bits);
        for (unsigned half = 1; half < n; half *= 2) fft_stage<<<n / 256, 128>>>(values, reinterpret_cast<const double2*>(droots.get()), half, n);
        HIP_CHECK(hipGetLastError());
        check::near("f64", data.download(), transform(in), 1e-10, 1e-10);
    }
    return check::finish();
}
