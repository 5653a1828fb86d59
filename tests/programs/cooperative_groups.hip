// Groups of threads by name (hip_cooperative_groups.h): the block, tiles of 4 to 64 threads, those that are active.
#include <hip/hip_cooperative_groups.h>

#include "check.h"

namespace cg = cooperative_groups;

// Sums of each tile of N threads, by every thread of the tile.
template <int N> __global__ void tile_sums(const int* in, int* out) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<N> tile = cg::tiled_partition<N>(block);
    unsigned i = blockIdx.x * block.size() + block.thread_rank();
    int v = in[i];
    for (unsigned d = tile.size() / 2; d > 0; d /= 2) v += tile.shfl_down(v, d);
    out[i] = tile.shfl(v, 0) * 100 + static_cast<int>(tile.thread_rank());
}

extern "C" __global__ void coalesced_ranks(const int* in, int* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = -1;
    if (in[i] > 0) {
        cg::coalesced_group active = cg::coalesced_threads();
        out[i] = static_cast<int>(active.thread_rank() * 100 + active.size());
    }
}

extern "C" __global__ void block_groups(const int* in, int* out) {
    __shared__ int values[128];
    cg::thread_block block = cg::this_thread_block();
    values[block.thread_rank()] = in[blockIdx.x * 128 + block.thread_rank()];
    block.sync();
    out[blockIdx.x * 128 + threadIdx.x] = values[127 - threadIdx.x] + static_cast<int>(block.group_index().x) * 1000;
}

template <int N> void check_tiles(const std::vector<int>& in) {
    std::vector<int> want(in.size());
    for (size_t i = 0; i < in.size(); i++) {
        size_t first = i / N * N;
        for (size_t k = first; k < first + N; k++) want[i] += in[k];
        want[i] = want[i] * 100 + static_cast<int>(i % N);
    }
    DeviceArray<int> din(in), out(in.size());
    tile_sums<N><<<static_cast<unsigned>(in.size() / 128), 128>>>(din.get(), out.get());
    HIP_CHECK(hipGetLastError());
    check::equal("tile", out.download(), want);
}

int main() {
    check::begin("cooperative_groups");
    check::Rng rng(40);
    std::vector<int> in(512), ranks(512, -1), reversed(512);
    for (int& v : in) v = static_cast<int>(rng.below(2000)) - 1000;
    check_tiles<4>(in);
    check_tiles<16>(in);
    check_tiles<32>(in);
    check_tiles<64>(in);
    for (int w = 0; w < 8; w++) {
        int size = 0;
        for (int l = 0; l < 64; l++) size += in[64 * w + l] > 0;
        for (int l = 0, rank = 0; l < 64; l++)
            if (in[64 * w + l] > 0) ranks[64 * w + l] = rank++ * 100 + size;
    }
    for (int i = 0; i < 512; i++) reversed[i] = in[i / 128 * 128 + 127 - i % 128] + i / 128 * 1000;
    DeviceArray<int> din(in), out(512);
    coalesced_ranks<<<2, 256>>>(din.get(), out.get());
    HIP_CHECK(hipGetLastError());
    check::equal("coalesced", out.download(), ranks);
    block_groups<<<4, 128>>>(din.get(), out.get());
    HIP_CHECK(hipGetLastError());
    check::equal("block", out.download(), reversed);
    return check::finish();
}
