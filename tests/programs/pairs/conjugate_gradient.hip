// Solves a system of equations by conjugate gradients, half of the unknowns on each device. In each step the program looks at two sums.
#include "../pair.h"

namespace {

constexpr int kHalf = 200, kSteps = 12;

// The matrix has 4 on the diagonal and -1 beside it; `p` has a value of the other half on each side.
__global__ void apply(double* q, const double* p) {
    const int at = pair::thread();
    if (at < kHalf) q[at] = 4 * p[at + 1] - p[at] - p[at + 2];
}
__global__ void dot(double* out, const double* a, const double* b) {
    double sum = 0;
    for (int i = 0; i < kHalf; i++) sum += a[i] * b[i];
    *out = sum;
}
__global__ void update(double* x, double* r, const double* p, const double* q, double alpha) {
    const int at = pair::thread();
    if (at >= kHalf) return;
    x[at] += alpha * p[at + 1];
    r[at] -= alpha * q[at];
}
__global__ void next_direction(double* p, const double* r, double beta) {
    const int at = pair::thread();
    if (at < kHalf) p[at + 1] = r[at] + beta * p[at + 1];
}

struct Half {
    double *x, *r, *p, *q, *sum;
};

} // namespace

int main(int argc, char** argv) {
    pair::begin("conjugate_gradient", argc, argv);
    check::Rng rng(9);
    const auto right = rng.reals<double>(2 * kHalf, -1, 1);
    pair::Queue queues[2] = {pair::Queue(0), pair::Queue(1)};
    Half halves[2];
    double rr = 0;
    for (int device : {0, 1}) {
        const std::vector<double> part(right.begin() + device * kHalf, right.begin() + (device + 1) * kHalf), zero(kHalf);
        std::vector<double> direction(kHalf + 2);
        std::copy(part.begin(), part.end(), direction.begin() + 1);
        halves[device] = {pair::allocate(device, zero), pair::allocate(device, part), pair::allocate(device, direction),
                          pair::allocate<double>(device, kHalf), pair::allocate<double>(device, 1)};
        for (double value : part) rr += value * value;
    }
    // Looks at the sum of both halves' products.
    const auto sum = [&](auto a, auto b) {
        double both = 0;
        for (int device : {0, 1}) queues[device].launch(dot, 1, halves[device].sum, a(halves[device]), b(halves[device]));
        for (int device : {0, 1}) {
            double part = 0;
            pair::enter(device);
            HIP_CHECK(hipMemcpyAsync(&part, halves[device].sum, sizeof part, hipMemcpyDeviceToHost, queues[device].stream));
            pair::wait(queues[device].stream);
            both += part;
        }
        return both;
    };
    const double first = rr;
    for (int step = 0; step < kSteps; step++) {
        if (step == kSteps / 2) pair::middle();
        // The values at the border of the halves.
        queues[0].after(queues[1]);
        queues[0].copy(halves[0].p + kHalf + 1, 0, halves[1].p + 1, 1, 1);
        queues[1].after(queues[0]);
        queues[1].copy(halves[1].p, 1, halves[0].p + kHalf, 0, 1);
        queues[0].after(queues[1]);
        for (int device : {0, 1}) queues[device].launch(apply, kHalf, halves[device].q, halves[device].p);
        const double alpha = rr / sum([](Half& half) { return half.p + 1; }, [](Half& half) { return half.q; });
        for (int device : {0, 1}) {
            Half& half = halves[device];
            queues[device].launch(update, kHalf, half.x, half.r, half.p, half.q, alpha);
        }
        const double before = rr;
        rr = sum([](Half& half) { return half.r; }, [](Half& half) { return half.r; });
        for (int device : {0, 1}) queues[device].launch(next_direction, kHalf, halves[device].p, halves[device].r, rr / before);
    }
    EXPECT(rr < first * 1e-9);
    std::vector<double> x;
    for (int device : {0, 1}) {
        pair::wait(queues[device].stream);
        pair::enter(device);
        const auto part = pair::look(halves[device].x, kHalf);
        x.insert(x.end(), part.begin(), part.end());
    }
    std::vector<double> got;
    for (int i = 0; i < 2 * kHalf; i++) got.push_back(4 * x[i] - (i > 0 ? x[i - 1] : 0) - (i + 1 < 2 * kHalf ? x[i + 1] : 0));
    check::near("the right side", got, right, 0, 1e-4);
    for (int device : {0, 1}) {
        pair::enter(device);
        const Half& half = halves[device];
        for (double* memory : {half.x, half.r, half.p, half.q, half.sum}) HIP_CHECK(hipFree(memory));
        queues[device].close();
    }
    return pair::finish();
}
