// check: kind=null-pointer kernel=write_null
#include "program.h"

__global__ void write_null(int* data) {
    data[threadIdx.x] = 1; // BUG
}

int main() {
    int* data = nullptr;
    write_null<<<1, 64>>>(data);
    return finish(data);
}
