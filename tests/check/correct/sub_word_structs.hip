// check: correct
#include "program.h"

struct Pixel {
    unsigned char red, green, blue;
};

__global__ void invert(Pixel* pixels, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    Pixel pixel = pixels[i];
    pixels[i] = Pixel{static_cast<unsigned char>(255 - pixel.red), pixel.blue, pixel.green};
}

int main() {
    Pixel* pixels = zeros<Pixel>(101);
    invert<<<2, 64>>>(pixels, 101);
    return finish(pixels);
}
