// check: kind=double-free line=host
#include "program.h"

int main() {
    int* data = zeros<int>(64);
    (void)hipFree(data);
    (void)hipFree(data); // BUG
    return 0;
}
