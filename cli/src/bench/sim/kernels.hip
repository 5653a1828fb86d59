// The loops of `hipr bench sim`. Each is written so that what it counts is nearly all that it executes; build.sh compiles it.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

typedef _Float16 half2v __attribute__((ext_vector_type(2)));
typedef _Float16 half4 __attribute__((ext_vector_type(4)));
typedef float float4v __attribute__((ext_vector_type(4)));

constexpr int CHAINS = 16;

// v_fma_f32 on registers: 16 chains, 4 links a round.
extern "C" __global__ void fma_f32(float* out, const float* in, int rounds) {
    const int item = blockIdx.x * blockDim.x + threadIdx.x;
    const float x = in[0] + item * 1e-6f, y = in[1] + item * 1e-6f;
    float a[CHAINS];
    for (int i = 0; i < CHAINS; ++i) a[i] = in[2] + i;
    for (int round = 0; round < rounds; ++round)
        for (int link = 0; link < 4; ++link)
            for (int i = 0; i < CHAINS; ++i) a[i] = __builtin_fmaf(a[i], x, y);
    float sum = 0;
    for (int i = 0; i < CHAINS; ++i) sum += a[i];
    out[item] = sum;
}

// v_add_u32, v_mul_lo_u32, v_lshrrev_b32, v_xor_b32 on registers: 16 chains.
extern "C" __global__ void integer(unsigned* out, const unsigned* in, int rounds) {
    const int item = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned x = in[0] + item, y = in[1] + item;
    unsigned a[CHAINS];
    for (int i = 0; i < CHAINS; ++i) a[i] = in[2] + i;
    for (int round = 0; round < rounds; ++round)
        for (int i = 0; i < CHAINS; ++i) {
            a[i] = (a[i] + x) * y;
            a[i] ^= a[i] >> 15;
        }
    unsigned sum = 0;
    for (int i = 0; i < CHAINS; ++i) sum ^= a[i];
    out[item] = sum;
}

// ds_read_b32, each lane from where what it read before says: 8 chains through a table of 2048 words.
extern "C" __global__ void lds(unsigned* out, const unsigned* next, int rounds) {
    __shared__ unsigned table[2048];
    for (unsigned i = threadIdx.x; i < 2048; i += 64) table[i] = next[i];
    __syncthreads();
    unsigned a[8];
    for (int i = 0; i < 8; ++i) a[i] = (threadIdx.x * 8 + i) * 4;
    for (int round = 0; round < rounds; ++round)
        for (int link = 0; link < 4; ++link)
            for (int i = 0; i < 8; ++i)
                a[i] = *(const unsigned*)((const char*)table + a[i]);
    unsigned sum = 0;
    for (int i = 0; i < 8; ++i) sum ^= a[i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// global_load_dword, neighbours from neighbouring words: 16 words of each of `rounds` pieces.
extern "C" __global__ void global_coalesced(unsigned* out, const unsigned* in, int rounds) {
    const unsigned lane = threadIdx.x;
    const unsigned* piece = in;
    unsigned sum = 0;
    for (int round = 0; round < rounds; ++round, piece += 1024)
#pragma unroll
        for (int i = 0; i < 16; ++i) sum ^= piece[i * 64 + lane];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// global_load_dword, each lane from where what it read before says: 8 chains through a table of byte offsets.
extern "C" __global__ void global_scattered(unsigned* out, const unsigned* next, int rounds) {
    unsigned a[8];
    for (int i = 0; i < 8; ++i) a[i] = (threadIdx.x * 8 + i) * 4;
    for (int round = 0; round < rounds; ++round)
        for (int link = 0; link < 4; ++link)
            for (int i = 0; i < 8; ++i) a[i] = *(const unsigned*)((const char*)next + a[i]);
    unsigned sum = 0;
    for (int i = 0; i < 8; ++i) sum ^= a[i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// v_mfma_f32_16x16x16_f16: 4 sums.
extern "C" __global__ void mfma_f16(float* out, const float* in, int rounds) {
    const int lane = threadIdx.x;
    half4 a, b;
    for (int i = 0; i < 4; ++i) {
        a[i] = (_Float16)(in[0] * (lane % 16 + i));
        b[i] = (_Float16)(in[1] * (lane / 16 + i));
    }
    float4v sums[4] = {};
    for (int round = 0; round < rounds; ++round)
        for (int i = 0; i < 4; ++i) sums[i] = __builtin_amdgcn_mfma_f32_16x16x16f16(a, b, sums[i], 0, 0, 0);
    float sum = 0;
    for (int i = 0; i < 4; ++i)
        for (int k = 0; k < 4; ++k) sum += sums[i][k];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// C = A * B, all n by n: tiles of 16 by 16 in LDS, an element a work-item.
extern "C" __global__ __launch_bounds__(256) void matmul_lds(float* c, const float* a, const float* b, int n) {
    __shared__ float as[16][16], bs[16][16];
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float sum = 0;
    for (int tile = 0; tile < n; tile += 16) {
        as[y][x] = a[row * n + tile + x];
        bs[y][x] = b[(tile + y) * n + column];
        __syncthreads();
        for (int k = 0; k < 16; ++k) sum += as[y][k] * bs[k][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

// The same with 4 by 4 elements a work-item: tiles of 64 by 64, 16 deep.
extern "C" __global__ __launch_bounds__(256) void matmul_blocked(float* c, const float* a, const float* b, int n) {
    __shared__ float as[16][64], bs[16][64];
    const int x = threadIdx.x, y = threadIdx.y, item = y * 16 + x;
    const int row = blockIdx.y * 64, column = blockIdx.x * 64;
    float sums[4][4] = {};
    for (int tile = 0; tile < n; tile += 16) {
        for (int i = 0; i < 4; ++i) {
            const int e = item + i * 256;
            as[e % 16][e / 16] = a[(row + e / 16) * n + tile + e % 16];
            bs[e / 64][e % 64] = b[(tile + e / 64) * n + column + e % 64];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            float p[4], q[4];
            for (int i = 0; i < 4; ++i) p[i] = as[k][y * 4 + i];
            for (int i = 0; i < 4; ++i) q[i] = bs[k][x * 4 + i];
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j) sums[i][j] += p[i] * q[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) c[(row + y * 4 + i) * n + column + x * 4 + j] = sums[i][j];
}

// C = A * B with matrix instructions, A and B of f16, B transposed: a group of 4 waves makes 64 by 64 from tiles in LDS, 32 deep.
extern "C" __global__ __launch_bounds__(256) void matmul_mfma(float* c, const _Float16* a, const _Float16* bt, int n) {
    __shared__ half4 as[64][9], bs[64][9];
    const int item = threadIdx.x, wave = item / 64, lane = item % 64;
    const int row = blockIdx.y * 64, column = blockIdx.x * 64;
    float4v sums[4] = {};
    for (int tile = 0; tile < n; tile += 32) {
        for (int i = 0; i < 2; ++i) {
            const int e = item + i * 256;
            as[e / 8][e % 8] = *(const half4*)(a + (row + e / 8) * n + tile + e % 8 * 4);
            bs[e / 8][e % 8] = *(const half4*)(bt + (column + e / 8) * n + tile + e % 8 * 4);
        }
        __syncthreads();
        for (int k = 0; k < 2; ++k) {
            const half4 left = as[wave * 16 + lane % 16][k * 4 + lane / 16];
            for (int j = 0; j < 4; ++j) {
                const half4 right = bs[j * 16 + lane % 16][k * 4 + lane / 16];
                sums[j] = __builtin_amdgcn_mfma_f32_16x16x16f16(left, right, sums[j], 0, 0, 0);
            }
        }
        __syncthreads();
    }
    for (int j = 0; j < 4; ++j)
        for (int i = 0; i < 4; ++i)
            c[(row + wave * 16 + lane / 16 * 4 + i) * n + column + j * 16 + lane % 16] = sums[j][i];
}

// y = W * x, W of f16 with `columns` columns: a wave makes a row, two elements a work-item at a time.
extern "C" __global__ void gemv_f16(float* y, const half2v* w, const half2v* x, int columns) {
    const int row = blockIdx.x * (blockDim.x / 64) + threadIdx.x / 64, lane = threadIdx.x % 64;
    const half2v* weights = w + (long)row * (columns / 2);
    float sum = 0;
    for (int i = lane; i < columns / 2; i += 64) {
        const half2v a = weights[i], b = x[i];
        sum += (float)a[0] * (float)b[0];
        sum += (float)a[1] * (float)b[1];
    }
    for (int distance = 32; distance > 0; distance /= 2) sum += __shfl_down(sum, distance);
    if (lane == 0) y[row] = sum;
}
