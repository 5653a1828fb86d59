// check: kind=leak line=host args=--leaks
#include "seed.h"

int main() {
    for (int i = 0; i < 10; ++i) {
        void *memory = nullptr, *other = nullptr;
        (void)hipMalloc(&memory, 1000);
        (void)hipMallocAsync(&other, 1000, nullptr); // BUG
        (void)hipFree(memory);
    }
    (void)hipDeviceSynchronize();
    return 0;
}
