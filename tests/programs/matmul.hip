// c (m by n) = a (m by k) * b (k by n): tiles of 16 by 16 in LDS with edges, a plain loop, and 4 by 4 values a thread.
#include "check.h"

extern "C" __global__ void matmul_tiled(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float ta[16][16], tb[16][17];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    float sum = 0;
    for (int t = 0; t < k; t += 16) {
        ta[ty][tx] = row < m && t + tx < k ? a[row * k + t + tx] : 0;
        tb[ty][tx] = t + ty < k && column < n ? b[(t + ty) * n + column] : 0;
        __syncthreads();
        for (int i = 0; i < 16; i++) sum += ta[ty][i] * tb[i][tx];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}

extern "C" __global__ void matmul_plain(const float* a, const float* b, float* c, int m, int n, int k) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m || column >= n) return;
    float sum = 0;
    for (int i = 0; i < k; i++) sum += a[row * k + i] * b[i * n + column];
    c[row * n + column] = sum;
}

// m and n multiples of 32, k of 8; 8 by 8 threads, each 4 by 4 results in registers.
extern "C" __global__ void matmul_blocked(const float* a, const float* b, float* c, int n, int k) {
    __shared__ float ta[8][32], tb[8][32];
    int tx = threadIdx.x, ty = threadIdx.y, lane = ty * 8 + tx;
    int row0 = blockIdx.y * 32, column0 = blockIdx.x * 32;
    float sum[4][4] = {};
    for (int t = 0; t < k; t += 8) {
        for (int i = lane; i < 256; i += 64) {
            ta[i % 8][i / 8] = a[(row0 + i / 8) * k + t + i % 8];
            tb[i / 32][i % 32] = b[(t + i / 32) * n + column0 + i % 32];
        }
        __syncthreads();
        for (int i = 0; i < 8; i++)
            for (int r = 0; r < 4; r++)
                for (int s = 0; s < 4; s++) sum[r][s] = fmaf(ta[i][ty * 4 + r], tb[i][tx * 4 + s], sum[r][s]);
        __syncthreads();
    }
    for (int r = 0; r < 4; r++)
        for (int s = 0; s < 4; s++) c[(row0 + ty * 4 + r) * n + column0 + tx * 4 + s] = sum[r][s];
}

static std::vector<double> reference(const std::vector<float>& a, const std::vector<float>& b, int m, int n, int k) {
    std::vector<double> c(static_cast<size_t>(m) * n);
    for (int i = 0; i < m; i++)
        for (int l = 0; l < k; l++)
            for (int j = 0; j < n; j++) c[i * n + j] += static_cast<double>(a[i * k + l]) * b[l * n + j];
    return c;
}

int main() {
    check::begin("matmul");
    check::Rng rng(4);
    {
        const int m = 70, n = 90, k = 53;
        std::vector<float> a = rng.reals<float>(m * k, -1, 1), b = rng.reals<float>(k * n, -1, 1);
        std::vector<double> want = reference(a, b, m, n, k);
        DeviceArray<float> da(a), db(b), dc(m * n);
        matmul_tiled<<<dim3((n + 15) / 16, (m + 15) / 16), dim3(16, 16)>>>(da.get(), db.get(), dc.get(), m, n, k);
        HIP_CHECK(hipGetLastError());
        check::near("tiled with edges", dc.download(), want, 1e-5, 1e-5);
        dc.fill_bytes(0xff);
        matmul_plain<<<dim3((n + 31) / 32, (m + 3) / 4), dim3(32, 4)>>>(da.get(), db.get(), dc.get(), m, n, k);
        HIP_CHECK(hipGetLastError());
        check::near("plain", dc.download(), want, 1e-5, 1e-5);
    }
    {
        const int n = 96;
        std::vector<float> a = rng.reals<float>(n * n, -1, 1), b = rng.reals<float>(n * n, -1, 1);
        std::vector<double> want = reference(a, b, n, n, n);
        DeviceArray<float> da(a), db(b), dc(n * n);
        matmul_tiled<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(da.get(), db.get(), dc.get(), n, n, n);
        HIP_CHECK(hipGetLastError());
        check::near("tiled", dc.download(), want, 1e-5, 1e-5);
        dc.fill_bytes(0xff);
        matmul_blocked<<<dim3(n / 32, n / 32), dim3(8, 8)>>>(da.get(), db.get(), dc.get(), n, n);
        HIP_CHECK(hipGetLastError());
        check::near("blocked", dc.download(), want, 1e-5, 1e-5);
    }
    return check::finish();
}
