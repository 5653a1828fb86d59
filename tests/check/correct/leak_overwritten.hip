// check: correct args=--leaks
#include "program.h"

int main() {
    void* memory = nullptr;
    for (int i = 0; i < 3; i++) {
        (void)hipFree(memory);
        if (hipMalloc(&memory, 256) != hipSuccess) return 2;
    }
    (void)hipFree(memory);
    return 0;
}
