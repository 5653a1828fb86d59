// check: kind=leak line=host args=--leaks
#include "program.h"

int main() {
    void* memory = nullptr;
    for (int i = 0; i < 3; i++) {
        if (hipMalloc(&memory, 256) != hipSuccess) return 2; // BUG
    }
    (void)hipFree(memory);
    return 0;
}
