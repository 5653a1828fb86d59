// check: kind=double-free line=host
#include "seed.h"

int main() {
    int *memory = device<int>(64);
    (void)hipFree(memory);
    (void)hipFree(memory); // BUG
    return 0;
}
