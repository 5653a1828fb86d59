// c = a + b with <<<>>>: integers, floats, 64-bit, a grid that does not divide the size, and a grid-stride loop.
#include "check.h"

extern "C" __global__ void add_i32(const int* a, const int* b, int* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

extern "C" __global__ void add_f32(const float* a, const float* b, float* c, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) c[i] = a[i] + b[i];
}

extern "C" __global__ void add_i64(const long long* a, const long long* b, long long* c, size_t n) {
    size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

extern "C" __global__ void add_f64(const double* a, const double* b, double* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

template <class T, class N, class Kernel> void run(const char* what, Kernel kernel, const std::vector<T>& a, const std::vector<T>& b, int blocks, int threads) {
    DeviceArray<T> da(a), db(b), dc(a.size());
    kernel<<<blocks, threads>>>(da.get(), db.get(), dc.get(), static_cast<N>(a.size()));
    HIP_CHECK(hipGetLastError());
    std::vector<T> want(a.size());
    for (size_t i = 0; i < a.size(); i++) {
        if constexpr (std::is_integral_v<T>) want[i] = static_cast<T>(static_cast<std::make_unsigned_t<T>>(a[i]) + static_cast<std::make_unsigned_t<T>>(b[i]));
        else want[i] = a[i] + b[i];
    }
    check::equal(what, dc.download(), want);
}

int main() {
    check::begin("vector_add");
    check::Rng rng(1);
    const int n = 10007, blocks = (n + 255) / 256;
    run<int, int>("i32", add_i32, rng.bits<int>(n), rng.bits<int>(n), blocks, 256);
    run<float, int>("f32", add_f32, rng.reals<float>(n, -1e3, 1e3), rng.reals<float>(n, -1, 1), 7, 192);
    run<long long, size_t>("i64", add_i64, rng.bits<long long>(n), rng.bits<long long>(n), blocks, 256);
    run<double, int>("f64", add_f64, rng.reals<double>(n, -1e3, 1e3), rng.reals<double>(n, -1e-3, 1e-3), blocks, 256);
    return check::finish();
}
