// check: kind=wild-pointer kernel=peek
#include "seed.h"

__global__ void peek(int *out, const int *const *where) {
    *out = **where; // BUG
}
int main() {
    int *out = device<int>(1);
    auto *where = device(std::vector<unsigned long long>{0xdeadbeefdeadbeefull});
    peek<<<1, 1>>>(out, reinterpret_cast<const int *const *>(where));
    return end(out);
}
