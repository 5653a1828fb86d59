// Memory of a thread's own: arrays indexed by values that only the lane knows, sorting, a stack machine, spilled registers, byte arrays.
#include "check.h"

// Sorts each thread's 24 values by insertion.
extern "C" __global__ void insertion_sort(const int* in, int* out) {
    int values[24];
    int base = (blockIdx.x * blockDim.x + threadIdx.x) * 24;
    for (int i = 0; i < 24; i++) values[i] = in[base + i];
    for (int i = 1; i < 24; i++) {
        int v = values[i], j = i;
        for (; j > 0 && values[j - 1] > v; j--) values[j] = values[j - 1];
        values[j] = v;
    }
    for (int i = 0; i < 24; i++) out[base + i] = values[i];
}

// Quick sort of 64 bytes without recursion, with a stack of ranges.
extern "C" __global__ void quick_sort_bytes(const unsigned char* in, unsigned char* out) {
    unsigned char values[64];
    signed char stack[64];
    int base = (blockIdx.x * blockDim.x + threadIdx.x) * 64, top = 0;
    for (int i = 0; i < 64; i++) values[i] = in[base + i];
    stack[top++] = 0;
    stack[top++] = 63;
    while (top > 0) {
        int high = stack[--top], low = stack[--top];
        if (low >= high) continue;
        unsigned char pivot = values[(low + high) / 2];
        int i = low - 1, j = high + 1;
        for (;;) {
            do i++;
            while (values[i] < pivot);
            do j--;
            while (values[j] > pivot);
            if (i >= j) break;
            unsigned char swap = values[i];
            values[i] = values[j];
            values[j] = swap;
        }
        stack[top++] = static_cast<signed char>(low);
        stack[top++] = static_cast<signed char>(j);
        stack[top++] = static_cast<signed char>(j + 1);
        stack[top++] = static_cast<signed char>(high);
    }
    for (int i = 0; i < 64; i++) out[base + i] = values[i];
}

// A stack machine that runs the same program on each thread's own input. Codes: 0 push input, 1 push constant, 2 add, 3 multiply, 4 duplicate, 5 swap, 6 subtract.
extern "C" __global__ void stack_machine(const unsigned char* program, int length, const double* inputs, double* results) {
    double stack[32];
    int top = 0, i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int pc = 0; pc < length; pc++) {
        switch (program[pc]) {
        case 0: stack[top++] = inputs[i]; break;
        case 1: stack[top++] = 0.5 * program[++pc]; break;
        case 2: top--; stack[top - 1] += stack[top]; break;
        case 3: top--; stack[top - 1] *= stack[top]; break;
        case 4: stack[top] = stack[top - 1]; top++; break;
        case 5: {
            double swap = stack[top - 1];
            stack[top - 1] = stack[top - 2];
            stack[top - 2] = swap;
            break;
        }
        default: top--; stack[top - 1] -= stack[top]; break;
        }
    }
    results[i] = stack[top - 1];
}

struct Record {
    unsigned short key;
    unsigned char small[3];
    float weight;
    double heavy;
    unsigned long long id;
};

// An array of structs, read and written by index: all widths of scratch access.
extern "C" __global__ void shuffle_records(const unsigned* seeds, double* out) {
    Record records[16];
    unsigned seed = seeds[blockIdx.x * blockDim.x + threadIdx.x];
    for (unsigned i = 0; i < 16; i++) {
        records[i].key = static_cast<unsigned short>(seed >> i);
        for (unsigned k = 0; k < 3; k++) records[i].small[k] = static_cast<unsigned char>(seed * (k + i));
        records[i].weight = static_cast<float>(i) * 0.5f;
        records[i].heavy = 1.0 / (i + 1);
        records[i].id = static_cast<unsigned long long>(seed) << i;
    }
    for (unsigned i = 0; i < 40; i++) {
        unsigned a = seed & 15, b = (seed >> 4) & 15;
        Record swap = records[a];
        records[a] = records[b];
        records[b] = swap;
        records[a].heavy += records[b].weight;
        seed = seed * 1664525u + 1013904223u;
    }
    double sum = 0;
    for (unsigned i = 0; i < 16; i++)
        sum += (i + 1) * (records[i].key + records[i].small[0] + 2 * records[i].small[1] + 3 * records[i].small[2] + records[i].weight + records[i].heavy +
                          static_cast<double>(records[i].id % 1000003));
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Address of a private array passed on as a plain pointer.
__device__ __noinline__ int sum_through(const int* values, int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) sum += values[i];
    return sum;
}

extern "C" __global__ void generic_pointer(const int* in, int* out) {
    __shared__ int shared_values[64];
    int private_values[8];
    int i = threadIdx.x;
    shared_values[i] = in[i] * 2;
    for (int k = 0; k < 8; k++) private_values[k] = in[(i + k) & 63];
    __syncthreads();
    // Global memory, LDS or scratch, by lane.
    const int* p = i % 3 == 0 ? in : i % 3 == 1 ? shared_values : private_values;
    out[i] = sum_through(p, 8);
}

static double run_program(const std::vector<unsigned char>& program, double input) {
    std::vector<double> s;
    auto pop = [&] { double v = s.back(); s.pop_back(); return v; };
    for (size_t pc = 0; pc < program.size(); pc++) {
        double a, b;
        switch (program[pc]) {
        case 0: s.push_back(input); break;
        case 1: s.push_back(0.5 * program[++pc]); break;
        case 2: b = pop(), a = pop(), s.push_back(a + b); break;
        case 3: b = pop(), a = pop(), s.push_back(a * b); break;
        case 4: s.push_back(s.back()); break;
        case 5: std::swap(s[s.size() - 1], s[s.size() - 2]); break;
        default: b = pop(), a = pop(), s.push_back(a - b); break;
        }
    }
    return s.back();
}

int main() {
    check::begin("scratch");
    check::Rng rng(18);
    {
        std::vector<int> in = rng.bits<int>(128 * 24), want = in;
        for (int t = 0; t < 128; t++) std::sort(want.begin() + 24 * t, want.begin() + 24 * (t + 1));
        DeviceArray<int> din(in), out(in.size());
        insertion_sort<<<2, 64>>>(din.get(), out.get());
        HIP_CHECK(hipGetLastError());
        check::equal("insertion sort", out.download(), want);
    }
    {
        std::vector<unsigned char> in = rng.bits<unsigned char>(64 * 64), want = in;
        for (int t = 0; t < 64; t++) std::sort(want.begin() + 64 * t, want.begin() + 64 * (t + 1));
        DeviceArray<unsigned char> din(in), out(in.size());
        quick_sort_bytes<<<1, 64>>>(din.get(), out.get());
        HIP_CHECK(hipGetLastError());
        check::equal("quick sort", out.download(), want);
    }
    {
        const std::vector<unsigned char> program = {0, 4, 3, 1, 7, 0, 3, 2, 4, 0, 5, 6, 1, 3, 3, 0, 0, 0, 1, 1, 2, 3, 2, 2, 6, 4, 2};
        std::vector<double> inputs = rng.reals<double>(128, -3, 3), want(128);
        for (int i = 0; i < 128; i++) want[i] = run_program(program, inputs[i]);
        DeviceArray<unsigned char> dprogram(program);
        DeviceArray<double> dinputs(inputs), out(128);
        stack_machine<<<2, 64>>>(dprogram.get(), static_cast<int>(program.size()), dinputs.get(), out.get());
        HIP_CHECK(hipGetLastError());
        check::near("stack machine", out.download(), want, 1e-13, 1e-12);
    }
    {
        std::vector<unsigned> seeds = rng.bits<unsigned>(128);
        std::vector<double> want(128);
        for (int t = 0; t < 128; t++) {
            struct { unsigned key; unsigned small[3]; float weight; double heavy; unsigned long long id; } r[16];
            unsigned seed = seeds[t];
            for (unsigned i = 0; i < 16; i++) {
                r[i].key = (seed >> i) & 0xffff;
                for (unsigned k = 0; k < 3; k++) r[i].small[k] = (seed * (k + i)) & 0xff;
                r[i].weight = static_cast<float>(i) * 0.5f, r[i].heavy = 1.0 / (i + 1), r[i].id = static_cast<unsigned long long>(seed) << i;
            }
            for (int i = 0; i < 40; i++) {
                unsigned a = seed & 15, b = (seed >> 4) & 15;
                std::swap(r[a], r[b]);
                r[a].heavy += r[b].weight;
                seed = seed * 1664525u + 1013904223u;
            }
            for (unsigned i = 0; i < 16; i++)
                want[t] += (i + 1) * (r[i].key + r[i].small[0] + 2 * r[i].small[1] + 3 * r[i].small[2] + static_cast<double>(r[i].weight) + r[i].heavy + static_cast<double>(r[i].id % 1000003));
        }
        DeviceArray<unsigned> dseeds(seeds);
        DeviceArray<double> out(128);
        shuffle_records<<<2, 64>>>(dseeds.get(), out.get());
        HIP_CHECK(hipGetLastError());
        check::near("records", out.download(), want, 1e-6);
    }
    {
        std::vector<int> in(64), want(64);
        for (int& v : in) v = static_cast<int>(rng.below(1000));
        for (int i = 0; i < 64; i++)
            for (int k = 0; k < 8; k++) want[i] += i % 3 == 0 ? in[k] : i % 3 == 1 ? in[k] * 2 : in[(i + k) & 63];
        DeviceArray<int> din(in), out(64);
        generic_pointer<<<1, 64>>>(din.get(), out.get());
        HIP_CHECK(hipGetLastError());
        check::equal("generic pointer", out.download(), want);
    }
    return check::finish();
}
