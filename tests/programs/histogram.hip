// Histograms of bytes: global atomics, LDS atomics merged once a block, and a returned count as a position (stable order not needed).
#include "check.h"

extern "C" __global__ void histogram_global(const unsigned char* data, unsigned* bins, unsigned n) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[data[i]], 1u);
}

extern "C" __global__ void histogram_lds(const unsigned char* data, unsigned* bins, unsigned n) {
    __shared__ unsigned local[256];
    local[threadIdx.x] = 0;
    __syncthreads();
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[data[i]], 1u);
    __syncthreads();
    if (local[threadIdx.x] != 0) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

// Groups indices by byte value: position = start of the value's group + what the atomic returned.
extern "C" __global__ void group_by_value(const unsigned char* data, unsigned* next, unsigned* order, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned position = atomicAdd(&next[data[i]], 1u);
    order[position] = i;
}

int main() {
    check::begin("histogram");
    check::Rng rng(6);
    const unsigned n = 30000;
    std::vector<unsigned char> data(n);
    for (unsigned char& v : data) v = static_cast<unsigned char>(rng.below(16) * rng.below(16)); // far from uniform
    std::vector<unsigned> want(256), start(256);
    for (unsigned char v : data) want[v]++;
    for (int i = 1; i < 256; i++) start[i] = start[i - 1] + want[i - 1];

    DeviceArray<unsigned char> ddata(data);
    DeviceArray<unsigned> bins(256);
    bins.fill_bytes(0);
    histogram_global<<<9, 128>>>(ddata.get(), bins.get(), n);
    HIP_CHECK(hipGetLastError());
    check::equal("global atomics", bins.download(), want);

    bins.fill_bytes(0);
    histogram_lds<<<11, 256>>>(ddata.get(), bins.get(), n);
    HIP_CHECK(hipGetLastError());
    check::equal("LDS atomics", bins.download(), want);

    DeviceArray<unsigned> next(start), order(n);
    group_by_value<<<(n + 255) / 256, 256>>>(ddata.get(), next.get(), order.get(), n);
    HIP_CHECK(hipGetLastError());
    std::vector<unsigned> got = order.download(), all(n), sorted;
    bool grouped = true;
    for (unsigned i = 0; i < n; i++) {
        all[i] = i;
        grouped = grouped && got[i] < n && (i == 0 || data[got[i - 1]] <= data[got[i]]);
    }
    EXPECT(grouped);
    sorted = got;
    std::sort(sorted.begin(), sorted.end());
    check::equal("every index once", sorted, all);
    return check::finish();
}
