// check: kind=wrong-free line=host
#include "program.h"

int main() {
    int* data = zeros<int>(64);
    (void)hipHostFree(data); // BUG
    (void)hipFree(data);
    return 0;
}
