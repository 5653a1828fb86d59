// check: correct
#include "program.h"

int main() {
    void* data = nullptr;
    if (hipMallocAsync(&data, 256, nullptr) != hipSuccess) return 2;
    (void)hipFreeAsync(data, nullptr);
    (void)hipDeviceSynchronize();
    return 0;
}
