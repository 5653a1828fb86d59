// check: kind=null-pointer kernel=read_weight
#include "seed.h"

struct Layer {
    int size;
    float *weights;
};
__global__ void read_weight(float *out, Layer layer) {
    out[threadIdx.x] = layer.weights[threadIdx.x]; // BUG
}
int main() {
    float *out = device<float>(64);
    read_weight<<<1, 64>>>(out, Layer{64, nullptr});
    return end(out);
}
