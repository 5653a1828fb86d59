// check: kind=double-free line=host
#include "seed.h"

int main() {
    void *memory = nullptr;
    (void)hipHostMalloc(&memory, 4096, 0);
    (void)hipHostFree(memory);
    (void)hipHostFree(memory); // BUG
    return 0;
}
