// check: correct
#include "program.h"

__global__ void say(int value) {
    if (threadIdx.x == 0) printf("block %d of %d\n", static_cast<int>(blockIdx.x), value);
}

int main() {
    say<<<2, 64>>>(2);
    return finish();
}
