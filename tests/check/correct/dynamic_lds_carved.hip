// check: correct
#include "program.h"

__global__ void carve(const int* in, float* out) {
    extern __shared__ char memory[];
    int* numbers = reinterpret_cast<int*>(memory);
    double* values = reinterpret_cast<double*>(memory + 128 * sizeof(int));
    int i = threadIdx.x;
    numbers[i] = in[i];
    values[i] = i;
    __syncthreads();
    out[i] = numbers[127 - i] + values[i ^ 64];
}

int main() {
    int* in = zeros<int>(128);
    float* out = raw<float>(128);
    carve<<<1, 128, 128 * (sizeof(int) + sizeof(double))>>>(in, out);
    return finish(in, out);
}
