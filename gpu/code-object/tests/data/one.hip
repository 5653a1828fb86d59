// One kernel and one variable, in the smallest of files.
#include <hip/hip_runtime.h>

__device__ int mark;
extern "C" __global__ void one(int *out) { out[threadIdx.x] = mark; }
