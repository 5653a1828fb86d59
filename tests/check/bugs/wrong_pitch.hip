// check: kind=out-of-bounds kernel=rows
#include "seed.h"

__global__ void rows(char *out, size_t pitch, int width, int height) {
    int x = threadIdx.x, y = blockIdx.x;
    if (x < width && y < height) out[y * pitch + x] = 1; // BUG
}
int main() {
    char *out = device<char>(100 * 64);
    rows<<<64, 100>>>(out, 128, 100, 64);
    return end(out);
}
