// check: correct
#include "program.h"

__global__ void copy_vectors(const float4* in, float* out, int count) {
    int i = threadIdx.x;
    if (i < count / 4) {
        float4 value = in[i];
        out[i] = value.x + value.y + value.z + value.w;
    }
}

int main() {
    float *in = zeros<float>(66), *out = raw<float>(64);
    copy_vectors<<<1, 64>>>(reinterpret_cast<const float4*>(in), out, 66);
    return finish(in, out);
}
