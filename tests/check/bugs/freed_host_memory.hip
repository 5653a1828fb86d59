// check: kind=wrong-free line=host
#include "seed.h"

int main() {
    std::vector<int> values(64);
    (void)hipFree(values.data()); // BUG
    return 0;
}
