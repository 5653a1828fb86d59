// check: kind=out-of-bounds kernel=fill_matrix
#include "program.h"

__global__ void fill_matrix(int* data, int width, int height) {
    int x = threadIdx.x, y = threadIdx.y;
    if (x < height && y < width)
        data[y * width + x] = x; // BUG
}

int main() {
    int* data = raw<int>(8 * 16);
    fill_matrix<<<1, dim3(16, 16)>>>(data, 16, 8);
    return finish(data);
}
