// Kernels that ask for much. build.sh beside this file compiles them to kernels.co.
#include <hip/hip_runtime.h>

// Runs until *stop is not 0, by itself for ever.
extern "C" __global__ void spin(const unsigned* stop) {
    while (__hip_atomic_load(stop, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 0) {}
}

extern "C" __global__ void count(unsigned* total) { *total += 1; }

struct Large {
    unsigned words[16000];
};

// A launch with nearly 64 KiB of arguments.
extern "C" __global__ void take(Large large, unsigned* total) { *total += large.words[15999]; }

// Uses 125 KiB of scratch for each work-item; then as spin.
extern "C" __global__ void hoard(const unsigned* stop, unsigned* out) {
    volatile unsigned table[32000];
    for (unsigned i = 0; i < 32000; i += 16) table[i] = i;
    while (__hip_atomic_load(stop, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 0) {}
    *out = table[threadIdx.x * 16];
}
