// check: kind=wrong-free line=host
#include "seed.h"

int main() {
    void *memory = nullptr;
    (void)hipHostMalloc(&memory, 4096, 0);
    (void)hipFree(memory); // BUG
    return 0;
}
