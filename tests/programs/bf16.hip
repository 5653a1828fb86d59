// bf16 (hip_bf16.h): conversions that round to even, arithmetic, pairs, dot products with f32 sums.
#include <hip/hip_bf16.h>

#include "check.h"

extern "C" __global__ void convert_bf16(const float* in, __hip_bfloat16* out, float* back, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = __float2bfloat16(in[i]);
    back[i] = __bfloat162float(out[i]);
}

extern "C" __global__ void arithmetic_bf16(const __hip_bfloat16* a, const __hip_bfloat16* b, __hip_bfloat16* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __hip_bfloat16* r = out + 5 * i;
    r[0] = __hadd(a[i], b[i]);
    r[1] = __hsub(a[i], b[i]);
    r[2] = __hmul(a[i], b[i]);
    r[3] = __hmax(a[i], b[i]);
    r[4] = __hlt(a[i], b[i]) ? a[i] : b[i];
}

extern "C" __global__ void dot_bf16(const __hip_bfloat16* a, const __hip_bfloat16* b, float* out, int length) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < length; k++) sum += __bfloat162float(a[i * length + k]) * __bfloat162float(b[i * length + k]);
    out[i] = sum;
}

static unsigned short rounded(float v) {
    unsigned bits;
    std::memcpy(&bits, &v, 4);
    if (std::isnan(v)) return static_cast<unsigned short>((bits >> 16) | 0x40);
    return static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float widened(unsigned short v) {
    unsigned bits = static_cast<unsigned>(v) << 16;
    float f;
    std::memcpy(&f, &bits, 4);
    return f;
}

int main() {
    check::begin("bf16");
    check::Rng rng(39);
    const int n = 2000;
    auto pointer = [](const DeviceArray<unsigned short>& v) { return reinterpret_cast<__hip_bfloat16*>(v.get()); };
    std::vector<float> in(n), back(n);
    std::vector<unsigned short> want(n);
    for (int i = 0; i < n; i++) in[i] = static_cast<float>(rng.real(-1, 1) * std::ldexp(1.0, static_cast<int>(rng.below(200)) - 100));
    in[0] = 0, in[1] = -0.0f, in[2] = INFINITY, in[3] = 3.4e38f, in[4] = 1 + 0x1p-8f, in[5] = 1 + 3 * 0x1p-8f, in[6] = 1e-40f;
    for (int i = 0; i < n; i++) want[i] = rounded(in[i]), back[i] = widened(want[i]);
    {
        DeviceArray<float> din(in), dback(n);
        DeviceArray<unsigned short> dout(n);
        convert_bf16<<<(n + 127) / 128, 128>>>(din.get(), pointer(dout), dback.get(), n);
        HIP_CHECK(hipGetLastError());
        check::equal("to bf16", dout.download(), want);
        check::equal("to f32", dback.download(), back);
    }
    std::vector<unsigned short> a(n), b(n), results(5 * n);
    for (int i = 0; i < n; i++) {
        a[i] = rounded(static_cast<float>(rng.real(-4, 4))), b[i] = rounded(static_cast<float>(rng.real(-4, 4)));
        float x = widened(a[i]), y = widened(b[i]);
        unsigned short* r = &results[5 * i];
        r[0] = rounded(x + y), r[1] = rounded(x - y), r[2] = rounded(x * y), r[3] = rounded(std::max(x, y)), r[4] = rounded(std::min(x, y));
    }
    DeviceArray<unsigned short> da(a), db(b), dresults(5 * n);
    arithmetic_bf16<<<(n + 127) / 128, 128>>>(pointer(da), pointer(db), pointer(dresults), n);
    HIP_CHECK(hipGetLastError());
    check::equal("arithmetic", dresults.download(), results);

    const int length = 30, rows = 64;
    std::vector<double> dots(rows);
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < length; k++) dots[i] += static_cast<double>(widened(a[i * length + k])) * static_cast<double>(widened(b[i * length + k]));
    DeviceArray<float> ddots(rows);
    dot_bf16<<<1, rows>>>(pointer(da), pointer(db), ddots.get(), length);
    HIP_CHECK(hipGetLastError());
    check::near("dot", ddots.download(), dots, 1e-5, 1e-5);
    return check::finish();
}
