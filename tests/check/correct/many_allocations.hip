// check: correct
#include "seed.h"

__global__ void set(int *out, int value) {
    *out = value;
}
int main() {
    std::vector<int *> all;
    for (int i = 0; i < 200; ++i) all.push_back(device<int>(1 + i));
    for (int i = 0; i < 200; ++i) set<<<1, 1>>>(all[i] + i, i);
    bool is_right = true;
    for (int i = 0; i < 200; ++i) is_right &= host(all[i] + i, 1)[0] == i;
    for (int *one : all) (void)hipFree(one);
    return pass(is_right);
}
