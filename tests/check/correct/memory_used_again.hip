// check: correct
#include "program.h"

__global__ void fill(int* data) { data[threadIdx.x] = 1; }

int main() {
    for (int i = 0; i < 5; i++) {
        int* data = raw<int>(64);
        fill<<<1, 64>>>(data);
        if (hipFree(data) != hipSuccess) return 2;
    }
    return finish();
}
