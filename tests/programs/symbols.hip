// __constant__ and __device__ variables: initial values, copies to and from them, offsets, address and size, use by several kernels.
#include "check.h"

__constant__ float coefficients[8] = {1, -2, 3, -4, 5, -6, 7, -8};
__constant__ int scale;
__device__ int counter = 100;
__device__ unsigned table[256];
__device__ double accumulator;
struct Settings {
    int rounds;
    float weight;
    unsigned char tag[8];
};
__constant__ Settings settings;
static __device__ unsigned hidden[4] = {0xdead, 0xbeef, 1, 2}; // internal linkage
__device__ unsigned* pointer_to_table;                      // set by the host

__managed__ unsigned shared_words[4] = {9, 8, 7, 6};
__managed__ unsigned long long shared_count = 5; // as large as a pointer

extern "C" __global__ void change_shared(unsigned add) {
    shared_words[threadIdx.x] += add;
    if (threadIdx.x == 0) shared_count *= 3;
}

extern "C" __global__ void polynomial(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (int k = 7; k >= 0; k--) sum = sum * x[i] + coefficients[k];
    y[i] = sum * static_cast<float>(scale);
}

extern "C" __global__ void count_up(int step) {
    atomicAdd(&counter, step);
    atomicAdd(&accumulator, 0.5);
}

extern "C" __global__ void fill_table(unsigned seed) { table[threadIdx.x] = (seed ^ threadIdx.x) * 2654435761u + hidden[threadIdx.x & 3]; }

extern "C" __global__ void read_settings(float* out) {
    out[0] = static_cast<float>(settings.rounds);
    out[1] = settings.weight;
    for (int i = 0; i < 8; i++) out[2 + i] = settings.tag[i];
}

extern "C" __global__ void through_pointer(unsigned add) { pointer_to_table[threadIdx.x] += add; }

int main() {
    check::begin("symbols");
    check::Rng rng(13);
    const int n = 1000;

    // Initial values, and a copy to a __constant__ one before a launch.
    int factor = 3;
    HIP_CHECK(hipMemcpyToSymbol(HIP_SYMBOL(scale), &factor, sizeof factor));
    std::vector<float> x = rng.reals<float>(n, -1, 1);
    std::vector<double> want(n);
    auto evaluate = [&](const float* c) {
        for (int i = 0; i < n; i++) {
            double sum = 0;
            for (int k = 7; k >= 0; k--) sum = sum * x[i] + c[k];
            want[i] = sum * factor;
        }
    };
    const float initial[8] = {1, -2, 3, -4, 5, -6, 7, -8};
    DeviceArray<float> dx(x), dy(n);
    polynomial<<<(n + 127) / 128, 128>>>(dx.get(), dy.get(), n);
    HIP_CHECK(hipGetLastError());
    evaluate(initial);
    check::near("initial values", dy.download(), want, 1e-5, 1e-4);

    // A part of it, at an offset; read back.
    float changed[8] = {1, -2, 3, 0.5f, 0.25f, -6, 7, -8};
    HIP_CHECK(hipMemcpyToSymbol(HIP_SYMBOL(coefficients), &changed[3], 2 * sizeof(float), 3 * sizeof(float)));
    polynomial<<<(n + 127) / 128, 128>>>(dx.get(), dy.get(), n);
    evaluate(changed);
    check::near("changed in part", dy.download(), want, 1e-5, 1e-4);
    std::vector<float> back(8);
    HIP_CHECK(hipMemcpyFromSymbol(back.data(), HIP_SYMBOL(coefficients), 8 * sizeof(float)));
    check::equal("read back", back, std::vector<float>(changed, changed + 8));

    // Device variables that kernels change.
    count_up<<<4, 64>>>(2);
    int count = 0;
    HIP_CHECK(hipMemcpyFromSymbol(&count, HIP_SYMBOL(counter), sizeof count));
    EXPECT(count == 100 + 4 * 64 * 2);
    double total = 0;
    HIP_CHECK(hipMemcpyFromSymbol(&total, HIP_SYMBOL(accumulator), sizeof total));
    EXPECT(total == 128);

    // The address is a device pointer like any other.
    void* address = nullptr;
    size_t size = 0;
    HIP_CHECK(hipGetSymbolAddress(&address, HIP_SYMBOL(table)));
    HIP_CHECK(hipGetSymbolSize(&size, HIP_SYMBOL(table)));
    EXPECT(address != nullptr && size == 256 * sizeof(unsigned));
    size = 256 * sizeof(unsigned);
    fill_table<<<1, 256>>>(99);
    const unsigned hidden_values[4] = {0xdead, 0xbeef, 1, 2};
    std::vector<unsigned> got(256), expected(256);
    for (unsigned i = 0; i < 256; i++) expected[i] = (99u ^ i) * 2654435761u + hidden_values[i & 3];
    HIP_CHECK(hipMemcpy(got.data(), address, size, hipMemcpyDeviceToHost));
    check::equal("table by address", got, expected);
    HIP_CHECK(hipMemcpyToSymbol(HIP_SYMBOL(pointer_to_table), &address, sizeof address));
    through_pointer<<<1, 256>>>(5);
    for (unsigned& v : expected) v += 5;
    HIP_CHECK(hipMemcpyFromSymbol(got.data(), HIP_SYMBOL(table), size));
    check::equal("table through a pointer", got, expected);

    // In stream order, from and to device memory, a struct, and the variable of internal linkage.
    hipStream_t stream;
    HIP_CHECK(hipStreamCreate(&stream));
    Settings s = {12, 0.75f, {1, 2, 3, 4, 5, 6, 7, 255}};
    HIP_CHECK(hipMemcpyToSymbolAsync(HIP_SYMBOL(settings), &s, sizeof s, 0, hipMemcpyHostToDevice, stream));
    DeviceArray<float> dsettings(10);
    read_settings<<<1, 1, 0, stream>>>(dsettings.get());
    std::vector<float> host(10);
    HIP_CHECK(hipMemcpyAsync(host.data(), dsettings.get(), 10 * sizeof(float), hipMemcpyDeviceToHost, stream));
    HIP_CHECK(hipStreamSynchronize(stream));
    check::equal("settings", host, {12, 0.75f, 1, 2, 3, 4, 5, 6, 7, 255});
    DeviceArray<unsigned> copy(256);
    HIP_CHECK(hipMemcpyFromSymbolAsync(copy.get(), HIP_SYMBOL(table), size, 0, hipMemcpyDeviceToDevice, stream));
    HIP_CHECK(hipStreamSynchronize(stream));
    check::equal("device to device", copy.download(), expected);
    unsigned words[2] = {0, 0};
    HIP_CHECK(hipMemcpyFromSymbolAsync(words, HIP_SYMBOL(hidden), 2 * sizeof(unsigned), sizeof(unsigned), hipMemcpyDeviceToHost, stream));
    HIP_CHECK(hipStreamSynchronize(stream));
    EXPECT(words[0] == 0xbeef && words[1] == 1);

    // Managed variables: host and device have the same ones.
    std::vector<unsigned> shared = {9, 8, 7, 6};
    unsigned long long expected_count = 5;
    for (unsigned add = 1; add <= 3; add++) {
        check::equal("managed", std::vector<unsigned>(shared_words, shared_words + 4), shared);
        EXPECT(shared_count == expected_count);
        shared_words[2] = shared[2] = 100 * add;
        change_shared<<<1, 4, 0, stream>>>(add);
        HIP_CHECK(hipStreamSynchronize(stream));
        for (unsigned& word : shared) word += add;
        expected_count *= 3;
    }
    check::equal("managed at the end", std::vector<unsigned>(shared_words, shared_words + 4), shared);
    EXPECT(shared_count == expected_count);
    HIP_CHECK(hipStreamDestroy(stream));
    return check::finish();
}
