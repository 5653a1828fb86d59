// Pinned memory that is allocated, written and freed again and again, far more of it than there is at a time.
//
// Usage: pinned_churn [BYTES [ROUNDS]]
#include "check.h"

#include <cstdlib>
#include <cstring>

int main(int argc, char** argv) {
    check::begin("pinned_churn");
    const size_t bytes = argc > 1 ? std::strtoull(argv[1], nullptr, 0) : 1 << 16;
    const int rounds = argc > 2 ? std::atoi(argv[2]) : 200;
    for (int round = 0; round < rounds; round++) {
        unsigned char* memory = nullptr;
        HIP_CHECK(hipHostMalloc(reinterpret_cast<void**>(&memory), bytes, 0));
        EXPECT(memory[0] == 0 && memory[bytes - 1] == 0);
        std::memset(memory, 0xff, bytes);
        HIP_CHECK(hipHostFree(memory));
    }
    HIP_CHECK(hipDeviceSynchronize());
    return check::finish();
}
