// What lanes of a wave of 64 tell each other: shuffles, ballots, votes, counts below, first lane, DPP and swizzle; with some lanes off.
#include "check.h"

extern "C" __global__ void shuffles(const int* in, int* out) {
    int lane = threadIdx.x & 63, v = in[blockIdx.x * blockDim.x + threadIdx.x];
    int* r = out + (blockIdx.x * blockDim.x + threadIdx.x) * 8;
    r[0] = __shfl(v, (lane * 7 + 3) & 63);
    r[1] = __shfl_up(v, 5);
    r[2] = __shfl_down(v, 9);
    r[3] = __shfl_xor(v, 33);
    r[4] = __shfl(v, 2, 16);
    r[5] = __shfl_down(v, 3, 8);
    r[6] = __shfl_up(v, 1, 32);
    r[7] = __shfl_xor(v, 1);
}

extern "C" __global__ void shuffles_wide(const double* in, double* out, const long long* in64, long long* out64) {
    int i = threadIdx.x;
    double v = in[i];
    for (int d = 32; d > 0; d /= 2) v += __shfl_down(v, d); // lane 0 gets the sum
    out[i] = __shfl(v, 0);
    out64[i] = __shfl_xor(in64[i], 17);
}

extern "C" __global__ void votes(const int* in, unsigned long long* ballots, int* flags) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 63;
    int v = in[i];
    unsigned long long positive = __ballot(v > 0);
    flags[4 * i] = __any(v > 90);
    flags[4 * i + 1] = __all(v > -90);
    flags[4 * i + 2] = __popcll(positive & ((1ull << lane) - 1)); // positive lanes below this one
    int divergent = -1;
    if (v & 1) {
        unsigned long long odd = __ballot(1); // active lanes only
        divergent = __popcll(odd) * 100 + __ffsll(odd);
    }
    flags[4 * i + 3] = divergent;
    if (lane == 0) ballots[i / 64] = positive;
}

extern "C" __global__ void lane_numbers(unsigned* out) {
    unsigned lane = __lane_id();
    unsigned first = __builtin_amdgcn_readfirstlane(threadIdx.x * 3 + 1);
    unsigned from_nine = __builtin_amdgcn_readlane(threadIdx.x * threadIdx.x, 9);
    out[threadIdx.x * 4] = lane;
    out[threadIdx.x * 4 + 1] = first;
    out[threadIdx.x * 4 + 2] = from_nine;
    out[threadIdx.x * 4 + 3] = warpSize;
}

// The sum of the wave's values by the DPP sequence that compilers use; lane 63 has it.
extern "C" __global__ void dpp_sum(const int* in, int* out) {
    int v = in[blockIdx.x * 64 + threadIdx.x];
    v += __builtin_amdgcn_update_dpp(0, v, 0x111, 0xf, 0xf, false); // row_shr:1
    v += __builtin_amdgcn_update_dpp(0, v, 0x112, 0xf, 0xf, false); // row_shr:2
    v += __builtin_amdgcn_update_dpp(0, v, 0x114, 0xf, 0xf, false); // row_shr:4
    v += __builtin_amdgcn_update_dpp(0, v, 0x118, 0xf, 0xf, false); // row_shr:8
    v += __builtin_amdgcn_update_dpp(0, v, 0x142, 0xa, 0xf, false); // row_bcast:15
    v += __builtin_amdgcn_update_dpp(0, v, 0x143, 0xc, 0xf, false); // row_bcast:31
    if (threadIdx.x == 63) out[blockIdx.x] = v;
}

extern "C" __global__ void dpp_moves(const int* in, int* out) {
    int v = in[threadIdx.x], *r = out + threadIdx.x * 8;
    r[0] = __builtin_amdgcn_update_dpp(-1, v, 0x1b, 0xf, 0xf, false); // quad_perm:[3,2,1,0]
    r[1] = __builtin_amdgcn_update_dpp(-1, v, 0x101, 0xf, 0xf, false); // row_shl:1, keeps -1 at the row's end
    r[2] = __builtin_amdgcn_update_dpp(-1, v, 0x121, 0xf, 0xf, false); // row_ror:1
    r[3] = __builtin_amdgcn_update_dpp(-1, v, 0x140, 0xf, 0xf, false); // row_mirror
    r[4] = __builtin_amdgcn_update_dpp(-1, v, 0x141, 0xf, 0xf, false); // row_half_mirror
    r[5] = __builtin_amdgcn_mov_dpp(v, 0x111, 0xf, 0xf, true);         // row_shr:1, zero at the row's start
    r[6] = __builtin_amdgcn_ds_swizzle(v, 0x041f);                     // xor 1
    r[7] = __builtin_amdgcn_ds_bpermute(4 * ((threadIdx.x * 5) & 63), v);
}

static int host_shuffle(const int* wave, int source) { return wave[source]; }

int main() {
    check::begin("warp");
    check::Rng rng(15);
    {
        const int n = 4 * 128;
        std::vector<int> in = rng.bits<int>(n), want(8 * n);
        for (int i = 0; i < n; i++) {
            const int *wave = &in[i / 64 * 64], lane = i % 64;
            int* r = &want[8 * i];
            r[0] = host_shuffle(wave, (lane * 7 + 3) & 63);
            r[1] = lane >= 5 ? wave[lane - 5] : wave[lane];
            r[2] = lane + 9 < 64 ? wave[lane + 9] : wave[lane];
            r[3] = wave[lane ^ 33];
            r[4] = wave[lane / 16 * 16 + 2];
            r[5] = lane % 8 + 3 < 8 ? wave[lane + 3] : wave[lane];
            r[6] = lane % 32 >= 1 ? wave[lane - 1] : wave[lane];
            r[7] = wave[lane ^ 1];
        }
        DeviceArray<int> din(in), dout(want.size());
        shuffles<<<4, 128>>>(din.get(), dout.get());
        HIP_CHECK(hipGetLastError());
        check::equal("shuffles", dout.download(), want);
    }
    {
        std::vector<double> in = rng.reals<double>(64, 0, 1);
        std::vector<long long> in64 = rng.bits<long long>(64), want64(64);
        double sum = 0;
        for (double v : in) sum += v;
        for (int i = 0; i < 64; i++) want64[i] = in64[i ^ 17];
        DeviceArray<double> din(in), dout(64);
        DeviceArray<long long> din64(in64), dout64(64);
        shuffles_wide<<<1, 64>>>(din.get(), dout.get(), din64.get(), dout64.get());
        HIP_CHECK(hipGetLastError());
        check::near("sum by shuffles", dout.download(), std::vector<double>(64, sum), 1e-14);
        check::equal("64-bit shuffle", dout64.download(), want64);
    }
    {
        const int n = 512;
        std::vector<int> in(n), want(4 * n);
        std::vector<unsigned long long> ballots(n / 64);
        for (int& v : in) v = static_cast<int>(rng.below(186)) - 93;
        for (int w = 0; w < n / 64; w++) {
            const int* wave = &in[64 * w];
            bool any = false, all = true;
            unsigned long long odd = 0;
            for (int l = 0; l < 64; l++) {
                any = any || wave[l] > 90;
                all = all && wave[l] > -90;
                if (wave[l] > 0) ballots[w] |= 1ull << l;
                if (wave[l] & 1) odd |= 1ull << l;
            }
            for (int l = 0; l < 64; l++) {
                int* r = &want[4 * (64 * w + l)];
                r[0] = any;
                r[1] = all;
                r[2] = __builtin_popcountll(ballots[w] & ((1ull << l) - 1));
                r[3] = wave[l] & 1 ? __builtin_popcountll(odd) * 100 + __builtin_ffsll(static_cast<long long>(odd)) : -1;
            }
        }
        DeviceArray<int> din(in), dflags(4 * n);
        DeviceArray<unsigned long long> dballots(n / 64);
        votes<<<2, 256>>>(din.get(), dballots.get(), dflags.get());
        HIP_CHECK(hipGetLastError());
        check::equal("ballots", dballots.download(), ballots);
        check::equal("votes", dflags.download(), want);
    }
    {
        std::vector<unsigned> want(4 * 192);
        for (unsigned i = 0; i < 192; i++) {
            unsigned first = i / 64 * 64;
            want[4 * i] = i % 64;
            want[4 * i + 1] = first * 3 + 1;
            want[4 * i + 2] = (first + 9) * (first + 9);
            want[4 * i + 3] = 64;
        }
        DeviceArray<unsigned> dout(want.size());
        lane_numbers<<<1, 192>>>(dout.get());
        HIP_CHECK(hipGetLastError());
        check::equal("lane numbers", dout.download(), want);
    }
    {
        std::vector<int> in = rng.bits<int>(3 * 64), want(3), moves(64 * 8);
        for (int i = 0; i < 192; i++) want[i / 64] = static_cast<int>(static_cast<unsigned>(want[i / 64]) + static_cast<unsigned>(in[i]));
        DeviceArray<int> din(in), dout(3), dmoves(moves.size());
        dpp_sum<<<3, 64>>>(din.get(), dout.get());
        HIP_CHECK(hipGetLastError());
        check::equal("sum by DPP", dout.download(), want);
        for (int l = 0; l < 64; l++) {
            int* r = &moves[8 * l];
            r[0] = in[l ^ 3];
            r[1] = l % 16 == 15 ? -1 : in[l + 1];
            r[2] = in[l % 16 == 0 ? l + 15 : l - 1];
            r[3] = in[l ^ 15];
            r[4] = in[l ^ 7];
            r[5] = l % 16 == 0 ? 0 : in[l - 1];
            r[6] = in[l ^ 1];
            r[7] = in[(l * 5) & 63];
        }
        dpp_moves<<<1, 64>>>(din.get(), dmoves.get());
        HIP_CHECK(hipGetLastError());
        check::equal("DPP moves", dmoves.download(), moves);
    }
    return check::finish();
}
