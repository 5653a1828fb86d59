// What the programs of this folder use: HIP, and memory of the device in one line.
#pragma once
#include <hip/hip_runtime.h>
#include <hip/hip_cooperative_groups.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

// Returns device memory for `count` values that nobody has written.
template <class T> T* raw(size_t count) {
    T* memory = nullptr;
    if (hipMalloc(reinterpret_cast<void**>(&memory), count * sizeof(T)) != hipSuccess) std::exit(2);
    return memory;
}

// Returns device memory for `count` values, all of whose bytes are 0.
template <class T> T* zeros(size_t count) {
    T* memory = raw<T>(count);
    if (hipMemset(memory, 0, count * sizeof(T)) != hipSuccess) std::exit(2);
    return memory;
}

// Waits for the device and frees memory; the value is main's. Errors are ignored, as a bug may have ended the context.
template <class... T> int finish(T*... memory) {
    (void)hipDeviceSynchronize();
    ((void)hipFree(memory), ...);
    return 0;
}
