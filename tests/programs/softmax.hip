// Softmax of each row: one block a row, maximum and sum by tree in LDS, expf; and one wave a row with shuffles.
#include "check.h"

extern "C" __global__ void softmax_rows(const float* in, float* out, int columns) {
    __shared__ float partial[128];
    const float* row = in + static_cast<size_t>(blockIdx.x) * columns;
    float* result = out + static_cast<size_t>(blockIdx.x) * columns;
    float high = -INFINITY;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) high = fmaxf(high, row[i]);
    partial[threadIdx.x] = high;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (static_cast<int>(threadIdx.x) < half) partial[threadIdx.x] = fmaxf(partial[threadIdx.x], partial[threadIdx.x + half]);
        __syncthreads();
    }
    high = partial[0];
    __syncthreads();
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(row[i] - high);
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (static_cast<int>(threadIdx.x) < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    for (int i = threadIdx.x; i < columns; i += blockDim.x) result[i] = expf(row[i] - high) / partial[0];
}

extern "C" __global__ void softmax_wave(const float* in, float* out, int columns) {
    const float* row = in + static_cast<size_t>(blockIdx.x) * columns;
    float* result = out + static_cast<size_t>(blockIdx.x) * columns;
    float high = -INFINITY;
    for (int i = threadIdx.x; i < columns; i += 64) high = fmaxf(high, row[i]);
    for (int d = 32; d > 0; d /= 2) high = fmaxf(high, __shfl_xor(high, d));
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += 64) sum += __expf(row[i] - high);
    for (int d = 32; d > 0; d /= 2) sum += __shfl_xor(sum, d);
    for (int i = threadIdx.x; i < columns; i += 64) result[i] = __expf(row[i] - high) / sum;
}

int main() {
    check::begin("softmax");
    check::Rng rng(8);
    const int rows = 48, columns = 300;
    std::vector<float> in = rng.reals<float>(rows * columns, -20, 20);
    std::vector<double> want(in.size());
    for (int r = 0; r < rows; r++) {
        double high = -INFINITY, sum = 0;
        for (int i = 0; i < columns; i++) high = std::max<double>(high, in[r * columns + i]);
        for (int i = 0; i < columns; i++) sum += std::exp(in[r * columns + i] - high);
        for (int i = 0; i < columns; i++) want[r * columns + i] = std::exp(in[r * columns + i] - high) / sum;
    }
    DeviceArray<float> din(in), dout(in.size());
    softmax_rows<<<rows, 128>>>(din.get(), dout.get(), columns);
    HIP_CHECK(hipGetLastError());
    check::near("block a row", dout.download(), want, 2e-5, 1e-12);
    dout.fill_bytes(0xff);
    softmax_wave<<<rows, 64>>>(din.get(), dout.get(), columns);
    HIP_CHECK(hipGetLastError());
    check::near("wave a row", dout.download(), want, 2e-5, 1e-12);
    return check::finish();
}
