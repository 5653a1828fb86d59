// check: kind=grid-race kernel=sum_all
#include "program.h"

__global__ void sum_all(const int* in, int* partial, unsigned* ticket, int* out) {
    if (threadIdx.x != 0) return;
    int sum = 0;
    for (int i = 0; i < 64; i++) sum += in[blockIdx.x * 64 + i];
    partial[blockIdx.x] = sum; // BUG
    if (atomicAdd(ticket, 1u) != gridDim.x - 1) return;
    int total = 0;
    for (unsigned b = 0; b < gridDim.x; b++)
        total += partial[b]; // BUG
    *out = total;
}

int main() {
    int *in = zeros<int>(512), *partial = raw<int>(8), *out = raw<int>(1);
    unsigned* ticket = zeros<unsigned>(1);
    sum_all<<<8, 64>>>(in, partial, ticket, out);
    return finish(in, partial, ticket, out);
}
