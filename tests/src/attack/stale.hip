// Kernels that leave something in all memory that a kernel has, and that look for what others left there. build.sh beside this file
// compiles them to stale.co.
#include <hip/hip_runtime.h>

constexpr unsigned LDS_WORDS = 16384;
constexpr unsigned SCRATCH_WORDS = 2048;

extern "C" __device__ unsigned remains[65536] = {};

// Writes the pattern to all LDS of a group, to scratch and to the module's variable. 64 KiB of LDS are given at the launch.
extern "C" __global__ void leave(unsigned pattern, unsigned* out) {
    extern __shared__ volatile unsigned lds[];
    volatile unsigned scratch[SCRATCH_WORDS];
    for (unsigned i = threadIdx.x; i < LDS_WORDS; i += blockDim.x) lds[i] = pattern;
    for (unsigned i = 0; i < SCRATCH_WORDS; i++) scratch[i] = pattern;
    for (unsigned i = threadIdx.x; i < 65536; i += blockDim.x) remains[i] = pattern;
    *out = lds[threadIdx.x] & scratch[threadIdx.x];
}

// Counts the words of LDS, of scratch and of the module's variable that have the pattern, before anything was written there.
extern "C" __global__ void find(unsigned pattern, unsigned* found) {
    extern __shared__ volatile unsigned lds[];
    volatile unsigned scratch[SCRATCH_WORDS];
    unsigned count = 0;
    for (unsigned i = threadIdx.x; i < LDS_WORDS; i += blockDim.x) count += lds[i] == pattern;
    for (unsigned i = 0; i < SCRATCH_WORDS; i++) count += scratch[i] == pattern;
    for (unsigned i = threadIdx.x; i < 65536; i += blockDim.x) count += remains[i] == pattern;
    atomicAdd(found, count);
}
