// check: correct
#include "seed.h"

__global__ void add(char *image, size_t pitch, int width, int height) {
    int x = threadIdx.x, y = blockIdx.x;
    if (x < width && y < height) image[y * pitch + x] += 1;
}
int main() {
    char *image = nullptr, in[20][100] = {}, out[20][100];
    size_t pitch = 0;
    (void)hipMallocPitch(reinterpret_cast<void **>(&image), &pitch, 100, 20);
    (void)hipMemcpy2D(image, pitch, in, 100, 100, 20, hipMemcpyHostToDevice);
    add<<<20, 128>>>(image, pitch, 100, 20);
    (void)hipMemcpy2D(out, 100, image, pitch, 100, 20, hipMemcpyDeviceToHost);
    return pass(out[19][99] == 1);
}
