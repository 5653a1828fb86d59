// check: correct
#include "seed.h"

__global__ void swap(int *a, int *b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, value = a[i];
    a[i] = b[i];
    b[i] = value;
}
int main() {
    int *a = device(numbers(512)), *b = device(numbers(512, 1000));
    for (int i = 0; i < 5; ++i) swap<<<2, 256>>>(a, b);
    std::vector<int> values = host(a, 512);
    (void)hipFree(a);
    (void)hipFree(b);
    int *again = device(numbers(512));
    swap<<<2, 128>>>(again, again + 256);
    return pass(values[511] == 1511 && host(again, 1)[0] == 256);
}
