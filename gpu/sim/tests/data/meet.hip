// Kernels that meet: workgroups at barriers of the grid, and code of one module with code of another one.
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_runtime.h>

// Each workgroup replaces its cell by a mix of it and the next one's, `rounds` times, all at once.
extern "C" __global__ void mix(unsigned* cells, unsigned rounds) {
    cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    unsigned group = blockIdx.x, next = (group + 1) % gridDim.x;
    for (unsigned round = 0; round < rounds; round++) {
        unsigned mixed = cells[group] * 3 + cells[next] + round;
        grid.sync();
        if (threadIdx.x == 0) cells[group] = mixed;
        grid.sync();
    }
}

using Function = unsigned (*)(unsigned);

__device__ unsigned salt;

__device__ __attribute__((noinline)) unsigned tripled(unsigned n) { return 3 * n + salt; }

// Gives the address of this module's function.
extern "C" __global__ void address(Function* out) { *out = tripled; }

// Calls whatever function is at an address.
extern "C" __global__ void call(const Function* function, unsigned* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = (*function)(i) + 1;
}
