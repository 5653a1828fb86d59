// Device functions: templates, calls that are not inlined, recursion, function pointers, virtual functions, lambdas, many arguments.
#include "check.h"

template <class T> __device__ __noinline__ T clamp_to(T v, T low, T high) { return v < low ? low : v > high ? high : v; }

template <class T, int N> __global__ void clamp_all(const T* in, T* out, int n, T low, T high) {
    for (int k = 0; k < N; k++) {
        int i = (blockIdx.x * blockDim.x + threadIdx.x) * N + k;
        if (i < n) out[i] = clamp_to(in[i], low, high);
    }
}

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__device__ __noinline__ int ackermann(int m, int n) {
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

__device__ int is_odd(unsigned n);
__device__ __noinline__ int is_even(unsigned n) { return n == 0 ? 1 : is_odd(n - 1); }
__device__ __noinline__ int is_odd(unsigned n) { return n == 0 ? 0 : is_even(n - 1); }

// Lanes recurse to different depths.
extern "C" __global__ void recursion(int* out) {
    int i = threadIdx.x;
    out[3 * i] = fibonacci(i % 11);
    out[3 * i + 1] = ackermann(i % 3, i % 4);
    out[3 * i + 2] = is_even(static_cast<unsigned>(i) % 23);
}

__device__ __noinline__ int op_add(int a, int b) { return a + b; }
__device__ __noinline__ int op_sub(int a, int b) { return a - b; }
__device__ __noinline__ int op_mul(int a, int b) { return a * b; }
__device__ __noinline__ int op_max(int a, int b) { return a > b ? a : b; }

using Operation = int (*)(int, int);
__device__ Operation operations[4] = {op_add, op_sub, op_mul, op_max};

// The function differs from lane to lane.
extern "C" __global__ void call_by_pointer(const int* which, const int* a, const int* b, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = operations[which[i] & 3](a[i], b[i]);
}

struct Shape {
    __device__ virtual float area() const = 0;
};
struct Circle : Shape {
    float r;
    __device__ explicit Circle(float radius) : r(radius) {}
    __device__ float area() const override { return 3.0f * r * r; }
};
struct Rectangle : Shape {
    float w, h;
    __device__ Rectangle(float width, float height) : w(width), h(height) {}
    __device__ float area() const override { return w * h; }
};

extern "C" __global__ void virtual_calls(const float* size, float* out) {
    int i = threadIdx.x;
    Circle circle(size[i]);
    Rectangle rectangle(size[i], 2.0f);
    const Shape* shape = i % 3 == 0 ? static_cast<const Shape*>(&circle) : &rectangle;
    out[i] = shape->area();
}

struct Wide {
    double values[6];
};
__device__ __noinline__ Wide many(int a, float b, double c, long long d, short e, char f, const float* g, Wide h, int i, int j, int k, int l, int m, double* n) {
    Wide r = h;
    r.values[0] += a + i;
    r.values[1] += b + j;
    r.values[2] += c + k;
    r.values[3] += static_cast<double>(d) + l;
    r.values[4] += e + m;
    r.values[5] += f + g[0];
    *n = r.values[0] * 2;
    return r;
}

extern "C" __global__ void many_arguments(const float* in, double* out) {
    int i = threadIdx.x;
    Wide h;
    for (int k = 0; k < 6; k++) h.values[k] = i * 10 + k;
    double local = 0;
    Wide r = many(i, 0.5f, 0.25, 1ll << 40, static_cast<short>(-i), 'a', in + i, h, 1, 2, 3, 4, 5, &local);
    for (int k = 0; k < 6; k++) out[7 * i + k] = r.values[k];
    out[7 * i + 6] = local;
}

template <class F> __device__ __noinline__ int repeat(int times, int start, F f) {
    for (int i = 0; i < times; i++) start = f(start, i);
    return start;
}

extern "C" __global__ void lambdas(const int* in, int* out) {
    int i = threadIdx.x, factor = in[i];
    out[i] = repeat(i % 7, 1, [factor](int v, int k) { return v * factor + k; }) + repeat(3, in[i], [](int v, int k) { return v ^ (k << 3); });
}

template <class T> void check_clamp(const char* what, std::vector<T> in, T low, T high) {
    std::vector<T> want(in.size());
    for (size_t i = 0; i < in.size(); i++) want[i] = std::clamp(in[i], low, high);
    DeviceArray<T> din(in), dout(in.size());
    clamp_all<T, 3><<<4, 64>>>(din.get(), dout.get(), static_cast<int>(in.size()), low, high);
    HIP_CHECK(hipGetLastError());
    check::equal(what, dout.download(), want);
}

static int host_ackermann(int m, int n) { return m == 0 ? n + 1 : n == 0 ? host_ackermann(m - 1, 1) : host_ackermann(m - 1, host_ackermann(m, n - 1)); }

int main() {
    check::begin("functions");
    check::Rng rng(17);
    check_clamp<int>("clamp int", rng.bits<int>(700), -1000000000, 1000000000);
    check_clamp<unsigned char>("clamp byte", rng.bits<unsigned char>(700), 50, 200);
    check_clamp<double>("clamp double", rng.reals<double>(700, -2, 2), -1.0, 1.0);
    check_clamp<long long>("clamp 64-bit", rng.bits<long long>(700), -(1ll << 62), 1ll << 62);
    {
        std::vector<int> want(3 * 64), fib = {0, 1};
        while (fib.size() < 11) fib.push_back(fib[fib.size() - 1] + fib[fib.size() - 2]);
        for (int i = 0; i < 64; i++) want[3 * i] = fib[i % 11], want[3 * i + 1] = host_ackermann(i % 3, i % 4), want[3 * i + 2] = (i % 23) % 2 == 0;
        DeviceArray<int> out(3 * 64);
        // The compiler does not know how deep the calls go, and the default stack has 1 KiB.
        HIP_CHECK(hipDeviceSetLimit(hipLimitStackSize, 16 << 10));
        recursion<<<1, 64>>>(out.get());
        HIP_CHECK(hipGetLastError());
        check::equal("recursion", out.download(), want);
    }
    {
        const int n = 500;
        std::vector<int> which = rng.bits<int>(n), a(n), b(n), want(n);
        for (int i = 0; i < n; i++) {
            a[i] = static_cast<int>(rng.below(20000)) - 10000, b[i] = static_cast<int>(rng.below(20000)) - 10000;
            int r[4] = {a[i] + b[i], a[i] - b[i], a[i] * b[i], std::max(a[i], b[i])};
            want[i] = r[which[i] & 3];
        }
        DeviceArray<int> dwhich(which), da(a), db(b), out(n);
        call_by_pointer<<<4, 128>>>(dwhich.get(), da.get(), db.get(), out.get(), n);
        HIP_CHECK(hipGetLastError());
        check::equal("by pointer", out.download(), want);
    }
    {
        std::vector<float> size = rng.reals<float>(64, 0, 4), want(64);
        for (int i = 0; i < 64; i++) want[i] = i % 3 == 0 ? 3.0f * size[i] * size[i] : size[i] * 2.0f;
        DeviceArray<float> dsize(size), out(64);
        virtual_calls<<<1, 64>>>(dsize.get(), out.get());
        HIP_CHECK(hipGetLastError());
        check::equal("virtual", out.download(), want);
    }
    {
        std::vector<float> in = rng.reals<float>(64, 0, 1);
        std::vector<double> want;
        for (int i = 0; i < 64; i++) {
            double r[6] = {i * 10.0 + i + 1, i * 10 + 1 + 0.5 + 2, i * 10 + 2 + 0.25 + 3, i * 10 + 3 + 0x1p40 + 4, i * 10 + 4.0 - i + 5, i * 10 + 5 + static_cast<double>(97 + in[i])};
            want.insert(want.end(), r, r + 6);
            want.push_back(r[0] * 2);
        }
        DeviceArray<float> din(in);
        DeviceArray<double> out(want.size());
        many_arguments<<<1, 64>>>(din.get(), out.get());
        HIP_CHECK(hipGetLastError());
        check::near("many arguments", out.download(), want, 1e-7);
    }
    {
        std::vector<int> in(64), want(64);
        for (int i = 0; i < 64; i++) {
            in[i] = static_cast<int>(rng.below(20));
            int v = 1, w = in[i];
            for (int k = 0; k < i % 7; k++) v = v * in[i] + k;
            for (int k = 0; k < 3; k++) w ^= k << 3;
            want[i] = v + w;
        }
        DeviceArray<int> din(in), out(64);
        lambdas<<<1, 64>>>(din.get(), out.get());
        HIP_CHECK(hipGetLastError());
        check::equal("lambdas", out.download(), want);
    }
    return check::finish();
}
