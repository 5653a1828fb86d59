// check: kind=out-of-bounds kernel=fill_rows
#include "program.h"

__global__ void fill_rows(float* data, size_t pitch, int width, int height) {
    int x = threadIdx.x, y = threadIdx.y;
    if (x < width && y < height)
        data[y * pitch + x] = x; // BUG
}

int main() {
    float* data = nullptr;
    size_t pitch = 0;
    if (hipMallocPitch(reinterpret_cast<void**>(&data), &pitch, 30 * sizeof(float), 8) != hipSuccess) return 2;
    fill_rows<<<1, dim3(32, 8)>>>(data, pitch, 30, 8);
    return finish(data);
}
