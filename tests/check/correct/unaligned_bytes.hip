// check: correct
#include "program.h"

__global__ void copy_from(const char* in, char* out, int by) {
    int i = threadIdx.x;
    out[i] = in[i + by];
}

int main() {
    char *in = zeros<char>(67), *out = raw<char>(64);
    copy_from<<<1, 64>>>(in, out, 3);
    return finish(in, out);
}
