// Arguments by value: structs with padding, nested arrays, 1, 2 and 4 KiB structs, and arguments that come after them.
#include "check.h"

struct Mixed {
    char a;
    double b;
    short c;
    struct {
        unsigned char d[3];
        float e;
    } inner[2];
    long long f;
};

struct Matrix {
    float values[16][16]; // 1 KiB
};

struct Big {
    unsigned words[512]; // 2 KiB
};

struct Tail {
    int first;
    unsigned char bytes[9];
};

extern "C" __global__ void read_mixed(Mixed m, char before, Mixed* copy, float* sum) {
    *copy = m;
    float s = 0;
    for (int i = 0; i < 2; i++) {
        s += m.inner[i].e;
        for (int j = 0; j < 3; j++) s += m.inner[i].d[j];
    }
    *sum = s + m.a + static_cast<float>(m.b) + m.c + static_cast<float>(m.f) + before;
}

// y = m * x for 16 values, then times what stands behind the struct.
extern "C" __global__ void apply_matrix(Matrix m, const float* x, float* y, float factor) {
    int row = threadIdx.x;
    float sum = 0;
    for (int i = 0; i < 16; i++) sum += m.values[row][i] * x[i];
    y[row] = sum * factor;
}

extern "C" __global__ void select_words(unsigned char shift, Big big, Tail tail, const unsigned* indices, unsigned* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = (big.words[indices[i] & 511] >> shift) + tail.first + tail.bytes[i % 9];
}

// 4 KiB less what the other arguments take: as large as a launch may be.
struct Huge {
    unsigned words[1020];
};

extern "C" __global__ void sum_huge(Huge huge, unsigned* sum) {
    unsigned s = 0;
    for (unsigned i = threadIdx.x; i < 1020; i += blockDim.x) s += huge.words[i] * (i + 1);
    atomicAdd(sum, s);
}

extern "C" __global__ void sixteen(int* out, char a, short b, int c, long long d, unsigned char e, unsigned short f, unsigned g, unsigned long long h, float i,
                                   double j, bool k, int2 l, float4 m, char3 n, double2 o) {
    int r[] = {a, b, c, static_cast<int>(d), e, f, static_cast<int>(g), static_cast<int>(h), static_cast<int>(i), static_cast<int>(j), k, l.x + l.y,
               static_cast<int>(m.x + m.y + m.z + m.w), n.x + n.y + n.z, static_cast<int>(o.x + o.y)};
    for (int q = 0; q < 15; q++) out[q] = r[q];
}

int main() {
    check::begin("big_args");
    check::Rng rng(12);
    {
        Mixed m = {-3, 2.5, -700, {{{1, 2, 250}, 0.25f}, {{4, 5, 6}, 8.5f}}, -123456};
        DeviceArray<Mixed> copy(1);
        DeviceArray<float> sum(1);
        read_mixed<<<1, 1>>>(m, 77, copy.get(), sum.get());
        HIP_CHECK(hipGetLastError());
        Mixed got = copy.download()[0];
        EXPECT(got.a == m.a && got.b == m.b && got.c == m.c && got.f == m.f && std::memcmp(got.inner, m.inner, 3) == 0);
        EXPECT(got.inner[0].e == m.inner[0].e && got.inner[1].e == m.inner[1].e && got.inner[1].d[2] == 6);
        check::near("mixed", sum.download(), std::vector<float>{253 + 0.25f + 15 + 8.5f - 3 + 2.5f - 700 - 123456 + 77}, 1e-6);
    }
    {
        Matrix m;
        for (auto& row : m.values)
            for (float& v : row) v = static_cast<float>(rng.real(-1, 1));
        std::vector<float> x = rng.reals<float>(16, -1, 1);
        std::vector<double> want(16);
        for (int r = 0; r < 16; r++)
            for (int i = 0; i < 16; i++) want[r] += static_cast<double>(m.values[r][i]) * x[i] * 3.5;
        DeviceArray<float> dx(x), dy(16);
        apply_matrix<<<1, 16>>>(m, dx.get(), dy.get(), 3.5f);
        HIP_CHECK(hipGetLastError());
        check::near("1 KiB", dy.download(), want, 1e-5, 1e-5);
    }
    {
        Big big;
        for (unsigned& w : big.words) w = rng.u32();
        Tail tail = {1000, {1, 2, 3, 4, 5, 6, 7, 8, 9}};
        std::vector<unsigned> indices = rng.bits<unsigned>(256), want(256);
        for (int i = 0; i < 256; i++) want[i] = (big.words[indices[i] & 511] >> 7) + 1000 + tail.bytes[i % 9];
        DeviceArray<unsigned> dindices(indices), dout(256);
        select_words<<<2, 128>>>(7, big, tail, dindices.get(), dout.get());
        HIP_CHECK(hipGetLastError());
        check::equal("2 KiB", dout.download(), want);
    }
    {
        Huge huge;
        unsigned want = 0;
        for (unsigned i = 0; i < 1020; i++) want += (huge.words[i] = rng.u32()) * (i + 1);
        DeviceArray<unsigned> sum(1);
        sum.fill_bytes(0);
        sum_huge<<<1, 64>>>(huge, sum.get());
        std::memset(&huge, 0, sizeof huge); // the launch has its own copy
        HIP_CHECK(hipGetLastError());
        check::equal("4 KiB", sum.download(), {want});
    }
    {
        DeviceArray<int> out(15);
        sixteen<<<1, 1>>>(out.get(), -1, -2, -3, -4, 5, 6, 7, 8, 9.5f, -10.5, true, int2{5, 7}, float4{1, 2, 3, 7}, char3{1, 2, -17}, double2{1.5, 13.5});
        HIP_CHECK(hipGetLastError());
        check::equal("sixteen", out.download(), {-1, -2, -3, -4, 5, 6, 7, 8, 9, -10, 1, 12, 13, -14, 15});
    }
    return check::finish();
}
