// check: kind=wrong-free line=host
#include "seed.h"

int main() {
    int *memory = device<int>(64);
    (void)hipHostFree(memory); // BUG
    return 0;
}
