// What the programs of this folder have in common.
#pragma once
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

// Returns device memory for `count` values.
template <class T>
inline T *device(size_t count) {
    T *memory = nullptr;
    (void)hipMalloc(&memory, count * sizeof(T));
    return memory;
}

// Returns device memory with these values.
template <class T>
inline T *device(const std::vector<T> &values) {
    T *memory = device<T>(values.size());
    (void)hipMemcpy(memory, values.data(), values.size() * sizeof(T), hipMemcpyHostToDevice);
    return memory;
}

// Returns values of device memory.
template <class T>
inline std::vector<T> host(const T *memory, size_t count) {
    std::vector<T> values(count);
    (void)hipMemcpy(values.data(), memory, count * sizeof(T), hipMemcpyDeviceToHost);
    return values;
}

// Ends a program with a bug: waits, and prints something that depends on the results.
template <class T>
inline int end(const T *memory) {
    (void)hipDeviceSynchronize();
    T value{};
    (void)hipMemcpy(&value, memory, sizeof(T), hipMemcpyDeviceToHost);
    printf("%g\n", static_cast<double>(value));
    return 0;
}

// Ends a program without a bug: says whether the results are right.
inline int pass(bool is_right) {
    puts(is_right ? "PASS" : "FAIL");
    return is_right ? 0 : 1;
}

inline std::vector<int> numbers(size_t count, int first = 0) {
    std::vector<int> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = first + static_cast<int>(i);
    return values;
}
