// check: correct
#include "program.h"

int main() {
    int* host = static_cast<int*>(std::malloc(256));
    int* data = zeros<int>(64);
    (void)hipFree(data);
    std::free(host);
    return 0;
}
