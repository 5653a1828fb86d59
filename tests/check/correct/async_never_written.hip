// check: correct
#include "program.h"

__global__ void test_flag(const int* flag, int* out) {
    if (*flag)
        *out = 1;
}

int main() {
    int *flag = nullptr, *out = zeros<int>(1);
    if (hipMallocAsync(reinterpret_cast<void**>(&flag), sizeof(int), nullptr) != hipSuccess) return 2;
    (void)hipMemsetAsync(flag, 0, sizeof(int), nullptr);
    test_flag<<<1, 1>>>(flag, out);
    (void)hipFreeAsync(flag, nullptr);
    return finish(out);
}
