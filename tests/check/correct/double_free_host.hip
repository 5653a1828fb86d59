// check: correct
#include "program.h"

int main() {
    void* data = nullptr;
    if (hipHostMalloc(&data, 256) != hipSuccess) return 2;
    (void)hipHostFree(data);
    return 0;
}
