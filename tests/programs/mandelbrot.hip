// The Mandelbrot set in f64 and in f32: lanes leave the loop at different iterations.
#include "check.h"

extern "C" __global__ void mandelbrot_f64(int* iterations, int width, int height, double x0, double y0, double step, int limit) {
#pragma clang fp contract(off)
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height) return;
    double cx = x0 + px * step, cy = y0 + py * step, x = 0, y = 0;
    int i = 0;
    while (i < limit && x * x + y * y <= 4) {
        double next = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = next;
        i++;
    }
    iterations[py * width + px] = i;
}

extern "C" __global__ void mandelbrot_f32(int* iterations, int width, int height, float x0, float y0, float step, int limit) {
#pragma clang fp contract(off)
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height) return;
    float cx = x0 + px * step, cy = y0 + py * step, x = 0, y = 0;
    int i = 0;
    for (; i < limit; i++) {
        float xx = x * x, yy = y * y;
        if (xx + yy > 4) break;
        y = 2 * x * y + cy;
        x = xx - yy + cx;
    }
    iterations[py * width + px] = i;
}

template <class T> std::vector<int> reference(int width, int height, T x0, T y0, T step, int limit) {
#pragma clang fp contract(off)
    std::vector<int> iterations(width * height);
    for (int py = 0; py < height; py++)
        for (int px = 0; px < width; px++) {
            T cx = x0 + px * step, cy = y0 + py * step, x = 0, y = 0;
            int i = 0;
            for (; i < limit && x * x + y * y <= 4; i++) {
                T next = x * x - y * y + cx;
                y = 2 * x * y + cy;
                x = next;
            }
            iterations[py * width + px] = i;
        }
    return iterations;
}

int main() {
    check::begin("mandelbrot");
    const int width = 120, height = 84, limit = 96;
    DeviceArray<int> out(width * height);
    dim3 blocks((width + 15) / 16, (height + 15) / 16), threads(16, 16);
    mandelbrot_f64<<<blocks, threads>>>(out.get(), width, height, -2.2, -1.2, 0.027, limit);
    HIP_CHECK(hipGetLastError());
    // No rounding may differ: additions, subtractions and multiplications only, and no contraction.
    check::equal("f64", out.download(), reference<double>(width, height, -2.2, -1.2, 0.027, limit));
    mandelbrot_f32<<<blocks, threads>>>(out.get(), width, height, -0.8f, -0.2f, 0.003f, limit);
    HIP_CHECK(hipGetLastError());
    check::equal("f32", out.download(), reference<float>(width, height, -0.8f, -0.2f, 0.003f, limit));
    return check::finish();
}
