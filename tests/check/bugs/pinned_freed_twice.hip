// check: kind=double-free kernel=-
#include "seed.h"

int main() {
    void *memory = nullptr;
    (void)hipHostMalloc(&memory, 4096, 0);
    (void)hipHostFree(memory);
    (void)hipHostFree(memory); // BUG
    return 0;
}
