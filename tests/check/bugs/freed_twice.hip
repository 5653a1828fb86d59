// check: kind=double-free kernel=-
#include "seed.h"

int main() {
    int *memory = device<int>(64);
    (void)hipFree(memory);
    (void)hipFree(memory); // BUG
    return 0;
}
