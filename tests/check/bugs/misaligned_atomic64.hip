// check: kind=misaligned kernel=add_half
#include "program.h"

__global__ void add_half(int* data, int at) {
    atomicAdd(reinterpret_cast<unsigned long long*>(data + at), 1ull); // BUG
}

int main() {
    int* data = zeros<int>(64);
    add_half<<<1, 1>>>(data, 3);
    return finish(data);
}
