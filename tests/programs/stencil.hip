// Grids stepped many times: heat by Jacobi steps (two buffers), the game of life on bytes with wrapping edges, a 3 by 3 convolution, a 3-D stencil.
#include "check.h"

extern "C" __global__ void heat_step(const float* in, float* out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int i = y * width + x;
    if (x == 0 || y == 0 || x == width - 1 || y == height - 1) out[i] = in[i];
    else out[i] = 0.25f * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
}

extern "C" __global__ void life_step(const unsigned char* in, unsigned char* out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int neighbours = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            if (dx || dy) neighbours += in[(y + dy + height) % height * width + (x + dx + width) % width];
    out[y * width + x] = neighbours == 3 || (neighbours == 2 && in[y * width + x]);
}

__constant__ float weights[9];

extern "C" __global__ void convolve(const float* in, float* out, int width, int height) {
    __shared__ float tile[18][18];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    for (int j = threadIdx.y; j < 18; j += 16)
        for (int i = threadIdx.x; i < 18; i += 16) {
            int gx = static_cast<int>(blockIdx.x) * 16 + i - 1, gy = static_cast<int>(blockIdx.y) * 16 + j - 1;
            tile[j][i] = gx >= 0 && gy >= 0 && gx < width && gy < height ? in[gy * width + gx] : 0;
        }
    __syncthreads();
    if (x >= width || y >= height) return;
    float sum = 0;
#pragma unroll
    for (int j = 0; j < 3; j++)
#pragma unroll
        for (int i = 0; i < 3; i++) sum += tile[threadIdx.y + j][threadIdx.x + i] * weights[j * 3 + i];
    out[y * width + x] = sum;
}

extern "C" __global__ void laplace_3d(const double* in, double* out, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x < 1 || y < 1 || z < 1 || x >= n - 1 || y >= n - 1 || z >= n - 1) return;
    int i = (z * n + y) * n + x;
    out[i] = in[i - 1] + in[i + 1] + in[i - n] + in[i + n] + in[i - n * n] + in[i + n * n] - 6 * in[i];
}

int main() {
    check::begin("stencil");
    check::Rng rng(27);
    {
        const int width = 70, height = 50, steps = 20;
        std::vector<float> grid = rng.reals<float>(width * height, 0, 100), next = grid;
        DeviceArray<float> a(grid), b(grid);
        float *from = a.get(), *to = b.get();
        for (int s = 0; s < steps; s++) {
            heat_step<<<dim3((width + 15) / 16, (height + 15) / 16), dim3(16, 16)>>>(from, to, width, height);
            std::swap(from, to);
        }
        HIP_CHECK(hipGetLastError());
        for (int s = 0; s < steps; s++) {
            for (int y = 1; y < height - 1; y++)
                for (int x = 1; x < width - 1; x++) {
                    int i = y * width + x;
                    next[i] = 0.25f * (grid[i - 1] + grid[i + 1] + grid[i - width] + grid[i + width]);
                }
            std::swap(grid, next);
        }
        check::near("heat", steps % 2 ? b.download() : a.download(), grid, 1e-5);
    }
    {
        const int width = 64, height = 48, steps = 8;
        std::vector<unsigned char> grid(width * height), next = grid;
        for (unsigned char& cell : grid) cell = rng.below(3) == 0;
        DeviceArray<unsigned char> a(grid), b(grid.size());
        for (int s = 0; s < steps; s++) {
            life_step<<<dim3(width / 32, height / 8), dim3(32, 8)>>>(s % 2 ? b.get() : a.get(), s % 2 ? a.get() : b.get(), width, height);
            for (int y = 0; y < height; y++)
                for (int x = 0; x < width; x++) {
                    int neighbours = -grid[y * width + x];
                    for (int dy = height - 1; dy <= height + 1; dy++)
                        for (int dx = width - 1; dx <= width + 1; dx++) neighbours += grid[(y + dy) % height * width + (x + dx) % width];
                    next[y * width + x] = neighbours == 3 || (neighbours == 2 && grid[y * width + x]);
                }
            std::swap(grid, next);
        }
        HIP_CHECK(hipGetLastError());
        check::equal("life", a.download(), grid);
    }
    {
        const int width = 75, height = 41;
        std::vector<float> in = rng.reals<float>(width * height, -1, 1), w = rng.reals<float>(9, -1, 1);
        std::vector<double> want(in.size());
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++)
                for (int j = 0; j < 3; j++)
                    for (int i = 0; i < 3; i++) {
                        int gx = x + i - 1, gy = y + j - 1;
                        if (gx >= 0 && gy >= 0 && gx < width && gy < height) want[y * width + x] += static_cast<double>(in[gy * width + gx]) * w[j * 3 + i];
                    }
        HIP_CHECK(hipMemcpyToSymbol(HIP_SYMBOL(weights), w.data(), 9 * sizeof(float)));
        DeviceArray<float> din(in), dout(in.size());
        convolve<<<dim3((width + 15) / 16, (height + 15) / 16), dim3(16, 16)>>>(din.get(), dout.get(), width, height);
        HIP_CHECK(hipGetLastError());
        check::near("convolution", dout.download(), want, 1e-5, 1e-6);
    }
    {
        const int n = 20;
        std::vector<double> in = rng.reals<double>(n * n * n, -1, 1), want(in.size());
        for (int z = 1; z < n - 1; z++)
            for (int y = 1; y < n - 1; y++)
                for (int x = 1; x < n - 1; x++) {
                    int i = (z * n + y) * n + x;
                    want[i] = in[i - 1] + in[i + 1] + in[i - n] + in[i + n] + in[i - n * n] + in[i + n * n] - 6 * in[i];
                }
        DeviceArray<double> din(in), dout(in.size());
        dout.fill_bytes(0);
        laplace_3d<<<dim3(3, 5, 5), dim3(8, 4, 4)>>>(din.get(), dout.get(), n);
        HIP_CHECK(hipGetLastError());
        check::near("3-D", dout.download(), want, 1e-13, 1e-14);
    }
    return check::finish();
}
