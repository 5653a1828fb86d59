// check: correct args=--leaks
#include "program.h"

int main() {
    void* memory = nullptr;
    if (hipHostMalloc(&memory, 4096) != hipSuccess) return 2;
    (void)hipHostFree(memory);
    return 0;
}
