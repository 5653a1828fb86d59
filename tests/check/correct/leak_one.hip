// check: correct args=--leaks
#include "program.h"

int main() {
    void *first = nullptr, *second = nullptr;
    if (hipMalloc(&first, 256) != hipSuccess) return 2;
    if (hipMalloc(&second, 512) != hipSuccess) return 2;
    (void)hipFree(first);
    (void)hipFree(second);
    return 0;
}
