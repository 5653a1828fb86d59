// check: kind=misaligned kernel=add_unaligned
#include "program.h"

__global__ void add_unaligned(char* data) {
    atomicAdd(reinterpret_cast<int*>(data + 1), 1); // BUG
}

int main() {
    char* data = zeros<char>(64);
    add_unaligned<<<1, 1>>>(data);
    return finish(data);
}
