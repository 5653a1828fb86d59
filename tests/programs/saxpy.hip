// y = a * x + y, the classic: <<<>>> on the null stream, and again in place.
#include "check.h"

extern "C" __global__ void saxpy(float a, const float* x, float* y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void daxpy(double a, const double* x, double* y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

int main() {
    check::begin("saxpy");
    const unsigned n = 1 << 15;
    check::Rng rng(2);

    std::vector<float> x = rng.reals<float>(n, -4, 4), y = rng.reals<float>(n, -4, 4), want(n);
    DeviceArray<float> dx(x), dy(y);
    for (float a : {2.5f, -0.125f, 3.0f}) saxpy<<<n / 256, 256>>>(a, dx.get(), dy.get(), n);
    HIP_CHECK(hipGetLastError());
    for (unsigned i = 0; i < n; i++) want[i] = std::fma(3.0f, x[i], std::fma(-0.125f, x[i], std::fma(2.5f, x[i], y[i])));
    check::near("saxpy", dy.download(), want, 1e-6, 1e-5);

    std::vector<double> xd = rng.reals<double>(n, -4, 4), yd = rng.reals<double>(n, -4, 4), wantd(n);
    DeviceArray<double> dxd(xd), dyd(yd);
    daxpy<<<dim3(n / 64), dim3(64)>>>(1.0 / 3, dxd.get(), dyd.get(), n);
    HIP_CHECK(hipGetLastError());
    for (unsigned i = 0; i < n; i++) wantd[i] = std::fma(1.0 / 3, xd[i], yd[i]);
    check::near("daxpy", dyd.download(), wantd, 1e-15, 1e-15);
    return check::finish();
}
