// check: correct
#include "program.h"

int main() {
    int* data = zeros<int>(64);
    (void)hipFree(data);
    return 0;
}
