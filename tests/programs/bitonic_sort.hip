// Bitonic sort of 4096 keys: steps inside blocks in LDS, wider steps in global memory, a launch for each; then keys with values.
#include "check.h"

extern "C" __global__ void sort_block(unsigned* keys) {
    __shared__ unsigned shared[256];
    unsigned t = threadIdx.x, global = blockIdx.x * 256 + t;
    shared[t] = keys[global];
    __syncthreads();
    for (unsigned size = 2; size <= 256; size *= 2)
        for (unsigned stride = size / 2; stride > 0; stride /= 2) {
            unsigned partner = t ^ stride;
            if (partner > t) {
                bool up = (global & size) == 0;
                unsigned a = shared[t], b = shared[partner];
                if ((a > b) == up) {
                    shared[t] = b;
                    shared[partner] = a;
                }
            }
            __syncthreads();
        }
    keys[global] = shared[t];
}

extern "C" __global__ void merge_step(unsigned* keys, unsigned size, unsigned stride) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, partner = i ^ stride;
    if (partner <= i) return;
    bool up = (i & size) == 0;
    unsigned a = keys[i], b = keys[partner];
    if ((a > b) == up) {
        keys[i] = b;
        keys[partner] = a;
    }
}

struct Pair {
    float key;
    int value;
};

extern "C" __global__ void merge_step_pairs(Pair* pairs, unsigned size, unsigned stride) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, partner = i ^ stride;
    if (partner <= i) return;
    Pair a = pairs[i], b = pairs[partner];
    if ((a.key > b.key) == ((i & size) == 0)) {
        pairs[i] = b;
        pairs[partner] = a;
    }
}

int main() {
    check::begin("bitonic_sort");
    check::Rng rng(26);
    {
        const unsigned n = 4096;
        std::vector<unsigned> keys = rng.bits<unsigned>(n), want = keys;
        std::sort(want.begin(), want.end());
        DeviceArray<unsigned> dkeys(keys);
        sort_block<<<n / 256, 256>>>(dkeys.get());
        for (unsigned size = 512; size <= n; size *= 2)
            for (unsigned stride = size / 2; stride > 0; stride /= 2) merge_step<<<n / 256, 256>>>(dkeys.get(), size, stride);
        HIP_CHECK(hipGetLastError());
        check::equal("keys", dkeys.download(), want);
    }
    {
        const unsigned n = 512;
        std::vector<Pair> pairs(n);
        for (unsigned i = 0; i < n; i++) pairs[i] = {static_cast<float>(rng.real(-100, 100)), static_cast<int>(i)};
        std::vector<Pair> want = pairs;
        std::stable_sort(want.begin(), want.end(), [](const Pair& a, const Pair& b) { return a.key < b.key; });
        DeviceArray<Pair> dpairs(pairs);
        for (unsigned size = 2; size <= n; size *= 2)
            for (unsigned stride = size / 2; stride > 0; stride /= 2) merge_step_pairs<<<n / 128, 128>>>(dpairs.get(), size, stride);
        HIP_CHECK(hipGetLastError());
        std::vector<float> keys, want_keys;
        std::vector<int> values, want_values;
        for (const Pair& p : dpairs.download()) keys.push_back(p.key), values.push_back(p.value);
        for (const Pair& p : want) want_keys.push_back(p.key), want_values.push_back(p.value);
        check::equal("pair keys", keys, want_keys);
        check::equal("pair values", values, want_values);
    }
    return check::finish();
}
