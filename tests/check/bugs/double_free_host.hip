// check: kind=double-free line=host
#include "program.h"

int main() {
    void* data = nullptr;
    if (hipHostMalloc(&data, 256) != hipSuccess) return 2;
    (void)hipHostFree(data);
    (void)hipHostFree(data); // BUG
    return 0;
}
