// Layer normalisation of each row with scale and shift, and the root-mean-square variant, in f32; sums in f64 for a third kernel.
#include "check.h"

extern "C" __device__ float block_sum(float value) {
    __shared__ float partial[256];
    partial[threadIdx.x] = value;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    float sum = partial[0];
    __syncthreads();
    return sum;
}

extern "C" __global__ void layernorm_f32(const float* in, const float* scale, const float* shift, float* out, int columns, float epsilon) {
    const float* row = in + static_cast<size_t>(blockIdx.x) * columns;
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += row[i];
    float mean = block_sum(sum) / static_cast<float>(columns);
    float squares = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) squares += (row[i] - mean) * (row[i] - mean);
    float inverse = rsqrtf(block_sum(squares) / static_cast<float>(columns) + epsilon);
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        out[static_cast<size_t>(blockIdx.x) * columns + i] = (row[i] - mean) * inverse * scale[i] + shift[i];
}

extern "C" __global__ void rmsnorm_f32(const float* in, const float* scale, float* out, int columns, float epsilon) {
    const float* row = in + static_cast<size_t>(blockIdx.x) * columns;
    float squares = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) squares += row[i] * row[i];
    float root = sqrtf(block_sum(squares) / static_cast<float>(columns) + epsilon);
    for (int i = threadIdx.x; i < columns; i += blockDim.x) out[static_cast<size_t>(blockIdx.x) * columns + i] = row[i] / root * scale[i];
}

// One thread a row, mean and variance in one pass (Welford), in f64.
extern "C" __global__ void layernorm_f64(const double* in, double* out, int rows, int columns, double epsilon) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    double mean = 0, m2 = 0;
    for (int i = 0; i < columns; i++) {
        double delta = in[r * columns + i] - mean;
        mean += delta / (i + 1);
        m2 += delta * (in[r * columns + i] - mean);
    }
    double inverse = 1 / sqrt(m2 / columns + epsilon);
    for (int i = 0; i < columns; i++) out[r * columns + i] = (in[r * columns + i] - mean) * inverse;
}

int main() {
    check::begin("layernorm");
    check::Rng rng(9);
    const int rows = 30, columns = 333;
    const double epsilon = 1e-5;
    std::vector<float> in = rng.reals<float>(rows * columns, -3, 5), scale = rng.reals<float>(columns, 0.5, 2), shift = rng.reals<float>(columns, -1, 1);
    std::vector<double> in64(in.begin(), in.end()), layer(in.size()), rms(in.size()), plain(in.size());
    for (int r = 0; r < rows; r++) {
        const float* row = &in[r * columns];
        double mean = 0, variance = 0, squares = 0;
        for (int i = 0; i < columns; i++) mean += row[i];
        mean /= columns;
        for (int i = 0; i < columns; i++) {
            variance += (row[i] - mean) * (row[i] - mean);
            squares += static_cast<double>(row[i]) * row[i];
        }
        for (int i = 0; i < columns; i++) {
            plain[r * columns + i] = (row[i] - mean) / std::sqrt(variance / columns + epsilon);
            layer[r * columns + i] = plain[r * columns + i] * scale[i] + shift[i];
            rms[r * columns + i] = row[i] / std::sqrt(squares / columns + epsilon) * scale[i];
        }
    }
    DeviceArray<float> din(in), dscale(scale), dshift(shift), dout(in.size());
    layernorm_f32<<<rows, 256>>>(din.get(), dscale.get(), dshift.get(), dout.get(), columns, static_cast<float>(epsilon));
    HIP_CHECK(hipGetLastError());
    check::near("layernorm", dout.download(), layer, 1e-5, 1e-5);
    rmsnorm_f32<<<rows, 128>>>(din.get(), dscale.get(), dout.get(), columns, static_cast<float>(epsilon));
    HIP_CHECK(hipGetLastError());
    check::near("rmsnorm", dout.download(), rms, 1e-5, 1e-6);
    DeviceArray<double> din64(in64), dout64(in.size());
    layernorm_f64<<<1, 64>>>(din64.get(), dout64.get(), rows, columns, epsilon);
    HIP_CHECK(hipGetLastError());
    check::near("layernorm in f64", dout64.download(), plain, 1e-12, 1e-13);
    return check::finish();
}
