// Transposes through LDS tiles of 32 by 32 (32 by 8 threads), with edges; 4-, 8- and 16-byte elements.
#include "check.h"

extern "C" __global__ void transpose_f32(const float* in, float* out, int width, int height) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y0 = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < width && y0 + j < height) tile[threadIdx.y + j][threadIdx.x] = in[(y0 + j) * width + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y0 = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < height && y0 + j < width) out[(y0 + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

extern "C" __global__ void transpose_u64(const unsigned long long* in, unsigned long long* out, int width, int height) {
    __shared__ unsigned long long tile[16][17];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x < width && y < height) tile[threadIdx.y][threadIdx.x] = in[y * width + x];
    __syncthreads();
    x = blockIdx.y * 16 + threadIdx.x;
    y = blockIdx.x * 16 + threadIdx.y;
    if (x < height && y < width) out[y * height + x] = tile[threadIdx.x][threadIdx.y];
}

extern "C" __global__ void transpose_f32x4(const float4* in, float4* out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) out[x * height + y] = in[y * width + x];
}

template <class T> std::vector<T> transposed(const std::vector<T>& in, int width, int height) {
    std::vector<T> out(in.size());
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) out[x * height + y] = in[y * width + x];
    return out;
}

int main() {
    check::begin("transpose");
    check::Rng rng(5);
    const int width = 150, height = 97;
    {
        std::vector<float> in = rng.reals<float>(width * height, -1, 1);
        DeviceArray<float> din(in), dout(in.size());
        transpose_f32<<<dim3((width + 31) / 32, (height + 31) / 32), dim3(32, 8)>>>(din.get(), dout.get(), width, height);
        HIP_CHECK(hipGetLastError());
        check::equal("f32", dout.download(), transposed(in, width, height));
    }
    {
        std::vector<unsigned long long> in = rng.bits<unsigned long long>(width * height);
        DeviceArray<unsigned long long> din(in), dout(in.size());
        transpose_u64<<<dim3((width + 15) / 16, (height + 15) / 16), dim3(16, 16)>>>(din.get(), dout.get(), width, height);
        HIP_CHECK(hipGetLastError());
        check::equal("u64", dout.download(), transposed(in, width, height));
    }
    {
        std::vector<float4> in(width * height);
        for (float4& v : in) v = make_float4(rng.real(-1, 1), rng.real(-1, 1), rng.real(-1, 1), rng.real(-1, 1));
        DeviceArray<float4> din(in), dout(in.size());
        transpose_f32x4<<<dim3((width + 63) / 64, height), 64>>>(din.get(), dout.get(), width, height);
        HIP_CHECK(hipGetLastError());
        std::vector<float4> got = dout.download(), want = transposed(in, width, height);
        EXPECT(std::memcmp(got.data(), want.data(), got.size() * sizeof(float4)) == 0);
        check::values_compared += static_cast<long>(4 * got.size());
    }
    return check::finish();
}
