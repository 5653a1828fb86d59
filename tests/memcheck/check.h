// What the files of this program share. It is compiled with AMD's own headers, so that every call crosses the real prototypes, and
// run under memcheck; what it expects of results is little: good arguments succeed, bad ones are refused.
#ifndef CHECK_H
#define CHECK_H

#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>
#include <hip/hiprtc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "undeclared.h"

// An address and a handle that nobody gave out.
#define NOWHERE ((void*)0xdead0000ul)

// The call succeeds.
#define GOOD(call) check_good((call), #call, __FILE__, __LINE__)
// The call is refused, at once or, where HIP's errors are asynchronous, at the next synchronization.
#define BAD(call) check_bad((call), #call, __FILE__, __LINE__)
// The call is refused at once, and with this error. For calls during a capture, when nothing can be synchronized, too.
#define FAILS(call, error) check_fails((call), error, #call, __FILE__, __LINE__)
// Good arguments for something that the emulated GPU does not have: hipErrorNotSupported, at once or at the next synchronization.
#define UNSUPPORTED(call) check_unsupported((call), #call, __FILE__, __LINE__)
// Every byte of the object has been written: memcheck watches what a decision depends on.
#define WRITTEN(object) check_written(&(object), sizeof(object), #object, __FILE__, __LINE__)

void check_good(int code, const char* call, const char* file, int line);
void check_bad(int code, const char* call, const char* file, int line);
void check_fails(int code, int error, const char* call, const char* file, int line);
void check_unsupported(int code, const char* call, const char* file, int line);
void check_written(const void* object, size_t size, const char* name, const char* file, int line);
void check_that(int holds, const char* what, const char* file, int line);
#define THAT(condition) check_that((condition), #condition, __FILE__, __LINE__)

// What the parts work with.
struct Setup {
    const char* kernels_file;
    void* kernels;        // a bundle with the kernels saxpy and matmul
    void* variables;      // a bundle with the variable float coefficients[8]
    char* device;         // 4096 bytes of device memory
    char host[4096];
    hipStream_t stream;
    hipEvent_t event;     // recorded
    hipModule_t module;
    hipFunction_t saxpy;
    // As clang registers them: the address stands for the kernel or the variable.
    void* fat_binary;
    void* variable_binary;
};
enum { DEVICE_BYTES = 4096, SAXPY_N = 64 };
extern const char saxpy_stub, coefficients_shadow;

void devices(struct Setup* s);
void contexts(struct Setup* s);
void errors(struct Setup* s);
void memory(struct Setup* s);
void host_memory(struct Setup* s);
void pools(struct Setup* s);
void copies(struct Setup* s);
void fills(struct Setup* s);
void streams(struct Setup* s);
void per_thread_streams(struct Setup* s);
void events(struct Setup* s);
void modules(struct Setup* s);
void launches(struct Setup* s);
void symbols(struct Setup* s);
void graph_shapes(struct Setup* s);
void graph_clones(struct Setup* s);
void kernel_nodes(struct Setup* s);
void node_attributes(struct Setup* s);
void copy_nodes(struct Setup* s);
void other_nodes(struct Setup* s);
void ready_graphs(struct Setup* s);
void lost_by_graphs(struct Setup* s);
void graph_descriptions(struct Setup* s);
void symbol_nodes(struct Setup* s);
void user_objects(struct Setup* s);
void arrays(struct Setup* s);
void textures(struct Setup* s);
void values(struct Setup* s);
void memory_of_graphs(struct Setup* s);
void mappings(struct Setup* s);
void nodes_of_drivers(struct Setup* s);
void lists_of_devices(struct Setup* s);
void libraries(struct Setup* s);
void graphics(struct Setup* s);
void captures(struct Setup* s);
void captured_graphs(struct Setup* s);
void joined_captures(struct Setup* s);
void spoilt_captures(struct Setup* s);
void captures_of_threads(struct Setup* s);

#endif
