// check: correct
#include "program.h"

__global__ void write_byte(char* data, int count) {
    int i = threadIdx.x;
    if (i < count)
        data[i] = 1;
}

int main() {
    char* data = raw<char>(61);
    write_byte<<<1, 64>>>(data, 61);
    return finish(data);
}
