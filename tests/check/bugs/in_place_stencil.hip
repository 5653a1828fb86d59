// check: kind=block-race kernel=smooth
#include "seed.h"

__global__ void smooth(int *values, int n) {
    int i = threadIdx.x;
    int sum = values[i] + values[(i + 1) % n]; // BUG
    values[i] = sum;
}
int main() {
    int *values = device(numbers(256));
    smooth<<<1, 256>>>(values, 256);
    return end(values);
}
