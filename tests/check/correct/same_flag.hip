// check: correct
#include "seed.h"

__global__ void find(int *found, const int *values, int wanted) {
    if (values[blockIdx.x * blockDim.x + threadIdx.x] % wanted == 0) *found = 1;
}
int main() {
    int *found = device(std::vector<int>(1)), *values = device(numbers(512));
    find<<<4, 128>>>(found, values, 7);
    return pass(host(found, 1)[0] == 1);
}
