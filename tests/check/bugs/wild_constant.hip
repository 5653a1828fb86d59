// check: kind=wild-pointer kernel=poke
#include "program.h"

__global__ void poke(unsigned long long* address) {
    address[threadIdx.x] = 1; // BUG
}

int main() {
    auto* memory = raw<unsigned long long>(64);
    poke<<<1, 64>>>(reinterpret_cast<unsigned long long*>(0x123456789000ull));
    return finish(memory);
}
