// What is linked with one.hip: its metadata is a second note in the linked file.
#include <hip/hip_runtime.h>

extern "C" __global__ void two(long a, int *out) { out[threadIdx.x] = a + blockDim.x; }
extern "C" __global__ void three(int *out) { out[threadIdx.x] = 3; }
