// check: kind=wrong-free line=host
#include "program.h"

int main() {
    int* data = zeros<int>(64);
    (void)hipFree(data + 4); // BUG
    return 0;
}
