// check: kind=double-free line=host
#include "program.h"

int main() {
    void* data = nullptr;
    if (hipMallocAsync(&data, 256, nullptr) != hipSuccess) return 2;
    (void)hipFreeAsync(data, nullptr);
    (void)hipDeviceSynchronize();
    (void)hipFreeAsync(data, nullptr); // BUG
    return 0;
}
