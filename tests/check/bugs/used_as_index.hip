// check: kind=uninitialized-read kernel=lookup
#include "program.h"

__global__ void lookup(const unsigned char* index, const int* table, int* out) {
    out[threadIdx.x] = table[index[threadIdx.x]]; // BUG
}

int main() {
    auto* index = raw<unsigned char>(64);
    int *table = zeros<int>(256), *out = raw<int>(64);
    lookup<<<1, 64>>>(index, table, out);
    return finish(index, table, out);
}
