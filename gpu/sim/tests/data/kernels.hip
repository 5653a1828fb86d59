// The kernels of the device tests. build.sh beside this file compiles them to kernels-O0.co and kernels-O3.co.
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_runtime.h>

extern "C" __global__ void saxpy(float a, const float* x, float* y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

// out[group] = sum of the group's part of x. Any group size up to 1024, powers of two.
extern "C" __global__ void reduce(const unsigned* x, unsigned* out) {
    __shared__ unsigned partial[1024];
    partial[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}

// Reverses each group's part of x through LDS whose size the launch gives.
extern "C" __global__ void reverse(unsigned* x) {
    extern __shared__ unsigned mirror[];
    unsigned* mine = x + blockIdx.x * blockDim.x;
    mirror[blockDim.x - 1 - threadIdx.x] = mine[threadIdx.x];
    __syncthreads();
    mine[threadIdx.x] = mirror[threadIdx.x];
}

extern "C" __global__ void count(unsigned* total, unsigned long long* wide, unsigned long long amount) {
    atomicAdd(total, 1u);
    atomicAdd(wide, amount);
}

// Where a work-item is, as it sees it: group, place in the group, sizes.
extern "C" __global__ void place(unsigned* out) {
    unsigned group = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    unsigned item = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    unsigned* mine = out + 4 * (group * blockDim.x * blockDim.y * blockDim.z + item);
    mine[0] = blockIdx.x | blockIdx.y << 8 | blockIdx.z << 16;
    mine[1] = threadIdx.x | threadIdx.y << 8 | threadIdx.z << 16;
    mine[2] = blockDim.x | blockDim.y << 8 | blockDim.z << 16;
    mine[3] = gridDim.x | gridDim.y << 8 | gridDim.z << 16;
}

// An array that is too large for registers and indexed by data.
extern "C" __global__ void shuffle(const unsigned* order, unsigned* out) {
    volatile unsigned table[64];
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    for (unsigned k = 0; k < 64; k++) table[k] = i * 64 + k;
    unsigned sum = 0;
    for (unsigned k = 0; k < 64; k++) sum = sum * 3 + table[order[k] % 64];
    out[i] = sum;
}

// Every group waits for every other one, `rounds` times, and checks that the others were where they should be.
extern "C" __global__ void meet(unsigned* arrived, unsigned* wrong, unsigned rounds) {
    for (unsigned round = 1; round <= rounds; round++) {
        if (threadIdx.x == 0) {
            __hip_atomic_fetch_add(arrived, 1u, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
            while (__hip_atomic_load(arrived, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) < round * gridDim.x) {}
            if (*(volatile unsigned*)arrived > (round + 1) * gridDim.x) atomicAdd(wrong, 1u);
        }
        __syncthreads();
    }
}

// The same by the runtime's means, in a cooperative launch: out[i] becomes the sum of all x after a rotation by each.
extern "C" __global__ void rotate(const unsigned* x, unsigned* a, unsigned* b, unsigned rounds) {
    auto grid = cooperative_groups::this_grid();
    unsigned n = gridDim.x * blockDim.x, i = grid.thread_rank();
    a[i] = x[i];
    grid.sync();
    for (unsigned round = 0; round < rounds; round++) {
        b[i] = a[(i + 1) % n] + 1;
        grid.sync();
        unsigned* t = a;
        a = b;
        b = t;
    }
}

// One group's lock after another's.
extern "C" __global__ void locked(unsigned* lock, unsigned* value) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0u, 1u) != 0u) {}
        __threadfence();
        *(volatile unsigned*)value = *(volatile unsigned*)value + 1;
        __threadfence();
        atomicExch(lock, 0u);
    }
}

extern "C" __global__ void wild(unsigned* p, unsigned long long offset) {
    if (threadIdx.x == 5) *(unsigned*)((char*)p + offset) = 1;
}

// Runs until *stop is not 0, by itself for ever.
extern "C" __global__ void spin(const unsigned* stop) {
    while (__hip_atomic_load(stop, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 0) {}
}

extern "C" __global__ void refuse() { asm volatile(".long 0xbfff0000"); }

__device__ unsigned counter = 40;
__constant__ unsigned table[4] = {1, 2, 3, 4};
__device__ unsigned* pointer = &counter;

// counter += table[k]; *out = the new value, read through a pointer that the loader relocates.
extern "C" __global__ void globals(unsigned* out, unsigned k) {
    counter += table[k];
    *out = *pointer;
}

__managed__ unsigned managed = 6;

extern "C" __global__ void take(unsigned* out) { *out = managed++; }

struct Pair {
    double scale;
    unsigned char tag;
};

// Arguments of every alignment.
extern "C" __global__ void arguments(unsigned char a, unsigned short b, Pair pair, unsigned char c, double* out) {
    out[0] = a;
    out[1] = b;
    out[2] = pair.scale;
    out[3] = pair.tag;
    out[4] = c;
}

extern "C" __global__ __launch_bounds__(64) void narrow(unsigned* out) { out[threadIdx.x] = 1; }
