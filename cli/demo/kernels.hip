// The kernels of `hipr demo`. build.sh beside this file compiles them to kernels.co.
#include <hip/hip_runtime.h>

extern "C" __global__ void saxpy(float a, const float* x, float* y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

// Sums 256 values a workgroup in LDS, then adds the workgroup's sum to *total.
extern "C" __global__ void reduce_sum(const unsigned* x, unsigned* total, unsigned n) {
    __shared__ unsigned partial[256];
    unsigned i = blockIdx.x * 256 + threadIdx.x;
    partial[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    for (unsigned half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(total, partial[0]);
}

// c = a * b, square, n a multiple of 16, tiles of 16 by 16 in LDS.
extern "C" __global__ void matmul(const float* a, const float* b, float* c, unsigned n) {
    __shared__ float ta[16][16], tb[16][16];
    unsigned tx = threadIdx.x, ty = threadIdx.y;
    unsigned row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
    float sum = 0;
    for (unsigned t = 0; t < n; t += 16) {
        ta[ty][tx] = a[row * n + t + tx];
        tb[ty][tx] = b[(t + ty) * n + col];
        __syncthreads();
        for (unsigned k = 0; k < 16; ++k) sum += ta[ty][k] * tb[k][tx];
        __syncthreads();
    }
    c[row * n + col] = sum;
}

// One row a workgroup of 64 threads.
extern "C" __global__ void softmax(const float* x, float* y, unsigned columns) {
    const float* in = x + (size_t)blockIdx.x * columns;
    float* out = y + (size_t)blockIdx.x * columns;
    float top = -INFINITY;
    for (unsigned i = threadIdx.x; i < columns; i += 64) top = fmaxf(top, in[i]);
    for (int d = 32; d > 0; d /= 2) top = fmaxf(top, __shfl_xor(top, d));
    float sum = 0;
    for (unsigned i = threadIdx.x; i < columns; i += 64) sum += expf(in[i] - top);
    for (int d = 32; d > 0; d /= 2) sum += __shfl_xor(sum, d);
    for (unsigned i = threadIdx.x; i < columns; i += 64) out[i] = expf(in[i] - top) / sum;
}

extern "C" __global__ void histogram(const unsigned char* data, unsigned* bins, unsigned n) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[data[i]], 1u);
}

extern "C" __global__ void mandelbrot(unsigned* iterations, unsigned width, unsigned height, unsigned limit) {
    unsigned px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height) return;
    double cx = -2.0 + 2.5 * px / width, cy = -1.25 + 2.5 * py / height, x = 0, y = 0;
    unsigned i = 0;
    while (i < limit && x * x + y * y <= 4.0) {
        double next = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = next;
        ++i;
    }
    iterations[py * width + px] = i;
}

// The 64-bit finalizer of SplitMix64.
extern "C" __global__ void hash64(const unsigned long long* x, unsigned long long* y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long z = x[i] + 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    y[i] = z ^ (z >> 31);
}

// Accelerations of n bodies (x, y, z, mass), softened.
extern "C" __global__ void nbody(const float4* bodies, float4* acceleration, unsigned n) {
    __shared__ float4 tile[128];
    unsigned i = blockIdx.x * 128 + threadIdx.x;
    float4 me = i < n ? bodies[i] : make_float4(0, 0, 0, 0);
    float ax = 0, ay = 0, az = 0;
    for (unsigned base = 0; base < n; base += 128) {
        tile[threadIdx.x] = base + threadIdx.x < n ? bodies[base + threadIdx.x] : make_float4(0, 0, 0, 0);
        __syncthreads();
        for (unsigned j = 0; j < 128; ++j) {
            float dx = tile[j].x - me.x, dy = tile[j].y - me.y, dz = tile[j].z - me.z;
            float r2 = dx * dx + dy * dy + dz * dz + 0.01f;
            float inv = 1.0f / sqrtf(r2);
            float s = tile[j].w * inv * inv * inv;
            ax += dx * s;
            ay += dy * s;
            az += dz * s;
        }
        __syncthreads();
    }
    if (i < n) acceleration[i] = make_float4(ax, ay, az, 0);
}
