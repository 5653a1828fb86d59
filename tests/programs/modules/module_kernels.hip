// The kernels and variables that module.hip loads from a file.
#include <hip/hip_runtime.h>

extern "C" __constant__ float module_scale = 2.0f;
extern "C" __device__ int module_counter = 40;
extern "C" __device__ unsigned module_table[64] = {7, 11, 13};

extern "C" __managed__ int module_managed[4] = {3, 1, 4, 1};
extern "C" __managed__ double module_managed_zero = 0;

// Each element of the managed variable is multiplied, and the other one counts the calls.
extern "C" __global__ void change_managed(int factor) {
    module_managed[threadIdx.x] *= factor;
    if (threadIdx.x == 0) module_managed_zero += 0.5;
}

extern "C" __global__ void scale_values(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * module_scale;
}

// Arguments of every size, in an order that needs padding.
extern "C" __global__ void mixed_arguments(char a, double b, short c, int d, unsigned char e, long long f, double* out) {
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        out[0] = a;
        out[1] = b;
        out[2] = c;
        out[3] = d;
        out[4] = e;
        out[5] = static_cast<double>(f);
    }
}

extern "C" __global__ void count_blocks() {
    if (threadIdx.x == 0) atomicAdd(&module_counter, 1);
}

extern "C" __global__ void read_table(unsigned* out) { out[threadIdx.x] = module_table[threadIdx.x]; }

// out[block] = sum of the block's values, kept in dynamic LDS.
extern "C" __global__ void sum_dynamic(const int* in, int* out) {
    extern __shared__ int values[];
    values[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        int sum = 0;
        for (unsigned i = 0; i < blockDim.x; i++) sum += values[i];
        out[blockIdx.x] = sum;
    }
}
