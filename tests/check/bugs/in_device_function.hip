// check: kind=out-of-bounds kernel=call_store
#include "program.h"

__device__ __noinline__ void store(int* data, int i, int value) {
    data[i] = value; // BUG
}

__global__ void call_store(int* data, int count) {
    int i = threadIdx.x;
    if (i < count) store(data, i, i);
}

int main() {
    int* data = raw<int>(50);
    call_store<<<1, 64>>>(data, 51);
    return finish(data);
}
