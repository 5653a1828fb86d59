// check: correct
#include "program.h"

__global__ void poke(unsigned long long* address) {
    address[threadIdx.x] = 1;
}

int main() {
    auto* memory = raw<unsigned long long>(64);
    poke<<<1, 64>>>(memory);
    return finish(memory);
}
