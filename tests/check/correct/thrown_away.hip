// check: correct
#include "seed.h"

// Values that nobody wrote are loaded and computed with, and the results thrown away, as compilers do with what a branch would skip.
__global__ void scale(int *out, const int *values, int count) {
    int i = threadIdx.x, scaled = values[i] * 3 + 1;
    out[i] = i < count ? scaled : -1;
}
__global__ void larger(int *out, const int *values, const float *weights, int count) {
    int i = threadIdx.x, next = values[i + 1];
    float weight = __builtin_sqrtf(weights[i + 1]) * 2;
    bool is_inside = i + 1 < count, is_larger = next > values[i], is_heavy = weight > 1;
    out[i] = is_inside && is_larger && is_heavy ? next - values[i] : 0;
}
__global__ void count_larger(int *out, const int *values, int count) {
    int i = threadIdx.x, next = values[i + 1];
    unsigned long long inside = __ballot(i + 1 < count), larger = __ballot(next > values[i]);
    if (i == 0) *out = __popcll(inside & larger);
}
int main() {
    int *out = device<int>(64), *counted = device<int>(1), *values = device<int>(65);
    float *weights = device<float>(65);
    (void)hipMemcpy(values, numbers(40).data(), 40 * sizeof(int), hipMemcpyHostToDevice);
    (void)hipMemcpy(weights, std::vector<float>(40, 1).data(), 40 * sizeof(float), hipMemcpyHostToDevice);
    scale<<<1, 64>>>(out, values, 40);
    bool is_right = host(out, 64)[39] == 39 * 3 + 1 && host(out, 64)[40] == -1;
    larger<<<1, 64>>>(out, values, weights, 40);
    is_right &= host(out, 64)[38] == 1 && host(out, 64)[39] == 0;
    count_larger<<<1, 64>>>(counted, values, 40);
    return pass(is_right && host(counted, 1)[0] == 39);
}
