// 300 small kernels, fills and copies, and one result read at the end: nothing in between needs an answer.
#include "check.h"

extern "C" __global__ void step(unsigned* state, const unsigned* table, unsigned k) {
    unsigned i = threadIdx.x;
    state[i] = state[i] * 1664525u + table[(i + k) & 63] + k;
}

int main() {
    check::begin("many_launches");
    check::Rng rng(36);
    std::vector<unsigned> table = rng.bits<unsigned>(64), want(64, 0x01010101u), got(64);
    DeviceArray<unsigned> dtable(64), state(64), copy(64);
    HIP_CHECK(hipMemcpy(dtable.get(), table.data(), 64 * sizeof(unsigned), hipMemcpyHostToDevice));
    HIP_CHECK(hipMemset(state.get(), 1, 64 * sizeof(unsigned)));
    for (unsigned k = 0; k < 300; k++) {
        step<<<1, 64>>>(state.get(), dtable.get(), k);
        HIP_CHECK(hipGetLastError()); // costs no round trip
        if (k % 50 == 49) {
            HIP_CHECK(hipMemcpyAsync(copy.get(), state.get(), 64 * sizeof(unsigned), hipMemcpyDeviceToDevice, nullptr));
            HIP_CHECK(hipMemcpyAsync(state.get(), copy.get(), 64 * sizeof(unsigned), hipMemcpyDeviceToDevice, nullptr));
            HIP_CHECK(hipMemcpyAsync(dtable.get(), table.data(), 8 * sizeof(unsigned), hipMemcpyHostToDevice, nullptr));
        }
    }
    HIP_CHECK(hipMemcpy(got.data(), state.get(), 64 * sizeof(unsigned), hipMemcpyDeviceToHost));
    for (unsigned k = 0; k < 300; k++)
        for (unsigned i = 0; i < 64; i++) want[i] = want[i] * 1664525u + table[(i + k) & 63] + k;
    check::equal("state", got, want);
    return check::finish();
}
