// check: kind=out-of-bounds kernel=write_byte
#include "program.h"

__global__ void write_byte(char* data, int count) {
    int i = threadIdx.x;
    if (i < count)
        data[i] = 1; // BUG
}

int main() {
    char* data = raw<char>(61);
    write_byte<<<1, 64>>>(data, 62);
    return finish(data);
}
