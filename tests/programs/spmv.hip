// Sparse work with indices from memory: CSR matrix times vector by a thread and by a wave a row, breadth-first search, gather and scatter.
#include "check.h"

extern "C" __global__ void spmv_thread(const int* starts, const int* columns, const float* values, const float* x, float* y, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int k = starts[row]; k < starts[row + 1]; k++) sum += values[k] * x[columns[k]];
    y[row] = sum;
}

extern "C" __global__ void spmv_wave(const int* starts, const int* columns, const double* values, const double* x, double* y, int rows) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 64, lane = threadIdx.x % 64;
    if (row >= rows) return;
    double sum = 0;
    for (int k = starts[row] + lane; k < starts[row + 1]; k += 64) sum += values[k] * x[columns[k]];
    for (int d = 32; d > 0; d /= 2) sum += __shfl_down(sum, d);
    if (lane == 0) y[row] = sum;
}

// One level: unvisited neighbours of vertices at `level` get level + 1.
extern "C" __global__ void bfs_level(const int* starts, const int* columns, int* distance, int level, int* changed, int vertices) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    // Others change it meanwhile, to what is not `level`.
    if (v >= vertices || __hip_atomic_load(&distance[v], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) != level) return;
    for (int k = starts[v]; k < starts[v + 1]; k++)
        if (atomicCAS(&distance[columns[k]], -1, level + 1) == -1) *changed = 1;
}

extern "C" __global__ void scatter_bytes(const unsigned short* to, const unsigned char* values, unsigned char* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[to[i]] = values[i];
}

int main() {
    check::begin("spmv");
    check::Rng rng(28);
    const int rows = 500;
    std::vector<int> starts(1, 0), columns;
    std::vector<float> values;
    for (int r = 0; r < rows; r++) {
        int count = static_cast<int>(rng.below(r % 50 == 0 ? 200 : 8)); // some rows are long, some empty
        for (int k = 0; k < count; k++) {
            columns.push_back(static_cast<int>(rng.below(rows)));
            values.push_back(static_cast<float>(rng.real(-1, 1)));
        }
        starts.push_back(static_cast<int>(columns.size()));
    }
    std::vector<float> x = rng.reals<float>(rows, -1, 1);
    std::vector<double> x64(x.begin(), x.end()), values64(values.begin(), values.end()), want(rows);
    for (int r = 0; r < rows; r++)
        for (int k = starts[r]; k < starts[r + 1]; k++) want[r] += values64[k] * x64[columns[k]];
    DeviceArray<int> dstarts(starts), dcolumns(columns);
    DeviceArray<float> dvalues(values), dx(x), dy(rows);
    spmv_thread<<<(rows + 127) / 128, 128>>>(dstarts.get(), dcolumns.get(), dvalues.get(), dx.get(), dy.get(), rows);
    HIP_CHECK(hipGetLastError());
    check::near("thread a row", dy.download(), want, 1e-5, 1e-5);
    DeviceArray<double> dvalues64(values64), dx64(x64), dy64(rows);
    spmv_wave<<<(rows + 3) / 4, 256>>>(dstarts.get(), dcolumns.get(), dvalues64.get(), dx64.get(), dy64.get(), rows);
    HIP_CHECK(hipGetLastError());
    check::near("wave a row", dy64.download(), want, 1e-12, 1e-13);

    std::vector<int> distance(rows, -1), queue = {0};
    distance[0] = 0;
    for (size_t q = 0; q < queue.size(); q++)
        for (int k = starts[queue[q]]; k < starts[queue[q] + 1]; k++)
            if (distance[columns[k]] < 0) {
                distance[columns[k]] = distance[queue[q]] + 1;
                queue.push_back(columns[k]);
            }
    std::vector<int> first(rows, -1);
    first[0] = 0;
    DeviceArray<int> ddistance(first), changed(1);
    for (int level = 0;; level++) {
        changed.fill_bytes(0);
        bfs_level<<<(rows + 255) / 256, 256>>>(dstarts.get(), dcolumns.get(), ddistance.get(), level, changed.get(), rows);
        HIP_CHECK(hipGetLastError());
        if (changed.download()[0] == 0) break;
    }
    check::equal("distances", ddistance.download(), distance);

    const int n = 3000;
    std::vector<unsigned short> to(n);
    for (int i = 0; i < n; i++) to[i] = static_cast<unsigned short>(i);
    for (int i = n - 1; i > 0; i--) std::swap(to[i], to[rng.below(static_cast<uint32_t>(i + 1))]);
    std::vector<unsigned char> bytes = rng.bits<unsigned char>(n), scattered(n);
    for (int i = 0; i < n; i++) scattered[to[i]] = bytes[i];
    DeviceArray<unsigned short> dto(to);
    DeviceArray<unsigned char> dbytes(bytes), dout(n);
    scatter_bytes<<<(n + 255) / 256, 256>>>(dto.get(), dbytes.get(), dout.get(), n);
    HIP_CHECK(hipGetLastError());
    check::equal("scattered bytes", dout.download(), scattered);
    return check::finish();
}
