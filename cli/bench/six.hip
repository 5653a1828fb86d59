// The kernel that `hipr bench` launches: six arguments of 8 bytes. build.sh beside this file compiles it to six.co.
#include <hip/hip_runtime.h>

extern "C" __global__ void six(unsigned long* sum, unsigned long a, unsigned long b, unsigned long c, unsigned long d,
                               unsigned long e) {
    if (threadIdx.x == 0) *sum = a + b + c + d + e;
}
