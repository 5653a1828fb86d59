// check: kind=out-of-bounds kernel=store_vectors
#include "program.h"

__global__ void store_vectors(int4* out, int count) {
    int i = threadIdx.x;
    if (i < count)
        out[i] = make_int4(i, i, i, i); // BUG
}

int main() {
    int* out = raw<int>(30);
    store_vectors<<<1, 64>>>(reinterpret_cast<int4*>(out), 8);
    return finish(out);
}
