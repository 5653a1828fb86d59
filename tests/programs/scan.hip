// Prefix sums: work-efficient scan of 512 values a block in LDS, scan of the block sums, and adding them; inclusive scan of floats.
#include "check.h"

// Exclusive scan of 2 * blockDim.x values a block (a power of two up to 512); sums[block] is the block's total.
extern "C" __global__ void scan_blocks(const unsigned* in, unsigned* out, unsigned* sums, unsigned n) {
    __shared__ unsigned temp[512];
    unsigned t = threadIdx.x, size = 2 * blockDim.x, base = blockIdx.x * size;
    temp[2 * t] = base + 2 * t < n ? in[base + 2 * t] : 0;
    temp[2 * t + 1] = base + 2 * t + 1 < n ? in[base + 2 * t + 1] : 0;
    unsigned offset = 1;
    for (unsigned d = size >> 1; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d) temp[offset * (2 * t + 2) - 1] += temp[offset * (2 * t + 1) - 1];
        offset *= 2;
    }
    if (t == 0) {
        if (sums) sums[blockIdx.x] = temp[size - 1];
        temp[size - 1] = 0;
    }
    for (unsigned d = 1; d < size; d *= 2) {
        offset >>= 1;
        __syncthreads();
        if (t < d) {
            unsigned left = offset * (2 * t + 1) - 1, right = offset * (2 * t + 2) - 1;
            unsigned swap = temp[left];
            temp[left] = temp[right];
            temp[right] += swap;
        }
    }
    __syncthreads();
    if (base + 2 * t < n) out[base + 2 * t] = temp[2 * t];
    if (base + 2 * t + 1 < n) out[base + 2 * t + 1] = temp[2 * t + 1];
}

extern "C" __global__ void add_block_sums(unsigned* out, const unsigned* sums, unsigned n) {
    unsigned base = blockIdx.x * 2 * blockDim.x;
    for (unsigned i = base + threadIdx.x; i < base + 2 * blockDim.x && i < n; i += blockDim.x) out[i] += sums[blockIdx.x];
}

// Hillis and Steele, two buffers in LDS, one block.
extern "C" __global__ void scan_inclusive_f64(const double* in, double* out, unsigned n) {
    __shared__ double buffer[2][256];
    unsigned t = threadIdx.x, from = 0;
    buffer[0][t] = t < n ? in[t] : 0;
    __syncthreads();
    for (unsigned d = 1; d < blockDim.x; d *= 2) {
        buffer[1 - from][t] = t >= d ? buffer[from][t] + buffer[from][t - d] : buffer[from][t];
        from = 1 - from;
        __syncthreads();
    }
    if (t < n) out[t] = buffer[from][t];
}

int main() {
    check::begin("scan");
    check::Rng rng(7);
    const unsigned n = 30001, blocks = (n + 511) / 512;
    std::vector<unsigned> in(n), want(n);
    unsigned sum = 0;
    for (unsigned i = 0; i < n; i++) {
        in[i] = rng.below(1000);
        want[i] = sum;
        sum += in[i];
    }
    DeviceArray<unsigned> din(in), dout(n), sums(blocks), offsets(blocks);
    scan_blocks<<<blocks, 256>>>(din.get(), dout.get(), sums.get(), n);
    scan_blocks<<<1, 64>>>(sums.get(), offsets.get(), nullptr, blocks);
    add_block_sums<<<blocks, 256>>>(dout.get(), offsets.get(), n);
    HIP_CHECK(hipGetLastError());
    check::equal("exclusive sum", dout.download(), want);

    std::vector<double> x = rng.reals<double>(200, 0, 1), wantx(200);
    double running = 0;
    for (int i = 0; i < 200; i++) wantx[i] = running += x[i];
    DeviceArray<double> dx(x), dy(200);
    scan_inclusive_f64<<<1, 256>>>(dx.get(), dy.get(), 200);
    HIP_CHECK(hipGetLastError());
    check::near("inclusive sum", dy.download(), wantx, 1e-13);
    return check::finish();
}
