// check: correct
#include "program.h"

__global__ void write_null(int* data) {
    data[threadIdx.x] = 1;
}

int main() {
    int* data = raw<int>(64);
    write_null<<<1, 64>>>(data);
    return finish(data);
}
