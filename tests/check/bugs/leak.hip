// check: kind=leak line=host args=--leaks
#include "seed.h"

__global__ void use(int *memory) {
    memory[threadIdx.x] = 1;
}
int main() {
    int *memory = nullptr;
    (void)hipMalloc(&memory, 256); // BUG
    use<<<1, 64>>>(memory);
    (void)hipDeviceSynchronize();
    return 0;
}
