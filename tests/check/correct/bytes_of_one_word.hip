// check: correct
#include "seed.h"

__global__ void set(unsigned char *bytes) {
    bytes[threadIdx.x * 2 + blockIdx.x] = threadIdx.x;
}
int main() {
    unsigned char *bytes = device<unsigned char>(256);
    set<<<2, 128>>>(bytes);
    return pass(host(bytes, 256)[255] == 127);
}
