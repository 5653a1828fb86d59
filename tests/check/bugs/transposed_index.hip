// check: kind=out-of-bounds kernel=transpose
#include "program.h"

__global__ void transpose(const int* in, int* out, int width, int height) {
    int x = threadIdx.x, y = threadIdx.y;
    if (x < width && y < height)
        out[x * width + y] = in[y * width + x]; // BUG
}

int main() {
    int *in = zeros<int>(32 * 4), *out = raw<int>(32 * 4);
    transpose<<<1, dim3(32, 4)>>>(in, out, 32, 4);
    return finish(in, out);
}
