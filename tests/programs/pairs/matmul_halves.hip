// A matrix product: each device has half of the rows; one device gets the other matrix from the other device and gives its rows back.
#include "../pair.h"

namespace {

constexpr int kSize = 64;

__global__ void multiply(int* c, const int* a, const int* b, int rows) {
    const int at = pair::thread();
    if (at >= rows * kSize) return;
    int sum = 0;
    for (int k = 0; k < kSize; k++) sum += a[at / kSize * kSize + k] * b[k * kSize + at % kSize];
    c[at] = sum;
}

} // namespace

int main(int argc, char** argv) {
    pair::begin("matmul_halves", argc, argv);
    check::Rng rng(1);
    const auto a = rng.bits<int>(kSize * kSize), b = rng.bits<int>(kSize * kSize);
    std::vector<int> want(kSize * kSize);
    for (int i = 0; i < kSize; i++)
        for (int j = 0; j < kSize; j++) {
            unsigned sum = 0;
            for (int k = 0; k < kSize; k++) sum += static_cast<unsigned>(a[i * kSize + k]) * static_cast<unsigned>(b[k * kSize + j]);
            want[i * kSize + j] = static_cast<int>(sum);
        }
    const size_t half = kSize * kSize / 2;
    pair::Queue queues[2] = {pair::Queue(0), pair::Queue(1)};
    int* second[2] = {pair::allocate(0, b), pair::allocate<int>(1, kSize * kSize)};
    int* rows[2] = {pair::allocate(0, std::vector<int>(a.begin(), a.begin() + half)),
                    pair::allocate(1, std::vector<int>(a.begin() + half, a.end()))};
    int* product[2] = {pair::allocate<int>(0, kSize * kSize), pair::allocate<int>(1, half)};
    queues[1].copy(second[1], 1, second[0], 0, kSize * kSize);
    queues[0].launch(multiply, half, product[0], rows[0], second[0], kSize / 2);
    pair::middle();
    queues[1].launch(multiply, half, product[1], rows[1], second[1], kSize / 2);
    queues[0].after(queues[1]);
    queues[0].copy(product[0] + half, 0, product[1], 1, half);
    pair::wait(queues[0].stream);
    pair::enter(0);
    check::equal("product", pair::look(product[0], kSize * kSize), want);
    for (int device : {0, 1}) {
        pair::enter(device);
        for (int* memory : {second[device], rows[device], product[device]}) HIP_CHECK(hipFree(memory));
        queues[device].close();
    }
    return pair::finish();
}
