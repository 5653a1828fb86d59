// Every working export of the client library, with good and with bad arguments, one part after another.
#include "check.h"

static int failures;

static void failed(const char* file, int line, const char* what, const char* why) {
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, why);
    failures++;
}

void check_good(int code, const char* call, const char* file, int line) {
    if (code != hipSuccess) failed(file, line, call, hipGetErrorName((hipError_t)code));
}

// The error of a call, which for one that is not answered comes with the next synchronization.
static int final_code(int code) {
    if (code == hipSuccess) code = hipDeviceSynchronize();
    (void)hipGetLastError();
    return code;
}

void check_bad(int code, const char* call, const char* file, int line) {
    if (final_code(code) == hipSuccess) failed(file, line, call, "is not refused");
}

void check_fails(int code, int error, const char* call, const char* file, int line) {
    (void)hipGetLastError();
    if (code != error) failed(file, line, call, hipGetErrorName((hipError_t)code));
}

void check_unsupported(int code, const char* call, const char* file, int line) {
    code = final_code(code);
    if (code != hipErrorNotSupported) failed(file, line, call, hipGetErrorName((hipError_t)code));
}

void check_that(int holds, const char* what, const char* file, int line) {
    if (!holds) failed(file, line, what, "does not hold");
}

void check_written(const void* object, size_t size, const char* name, const char* file, int line) {
    // 64 bits of FNV-1a: not one of them is known if a single byte is not.
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < size; i++) hash = (hash ^ ((const unsigned char*)object)[i]) * 0x100000001b3;
    if (hash == 0) failed(file, line, name, "is a strange value");
}

static void* read_file(const char* path) {
    FILE* file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) exit(3);
    size_t size = (size_t)ftell(file);
    char* bytes = malloc(size);
    rewind(file);
    if (!bytes || fread(bytes, 1, size, file) != size) exit(3);
    fclose(file);
    return bytes;
}

const char saxpy_stub, coefficients_shadow;

static void set_up(struct Setup* s, char** argv) {
    s->kernels_file = argv[1];
    s->kernels = read_file(argv[1]);
    s->variables = read_file(argv[2]);
    for (size_t i = 0; i < sizeof s->host; i++) s->host[i] = (char)i;
    symbols(s);
    GOOD(hipMalloc((void**)&s->device, DEVICE_BYTES));
    GOOD(hipMemset(s->device, 0, DEVICE_BYTES));
    GOOD(hipStreamCreate(&s->stream));
    GOOD(hipEventCreate(&s->event));
    GOOD(hipEventRecord(s->event, s->stream));
    GOOD(hipModuleLoadData(&s->module, s->kernels));
    GOOD(hipModuleGetFunction(&s->saxpy, s->module, "saxpy"));
}

static void tear_down(struct Setup* s) {
    GOOD(hipModuleUnload(s->module));
    GOOD(hipEventDestroy(s->event));
    GOOD(hipStreamDestroy(s->stream));
    GOOD(hipFree(s->device));
    __hipUnregisterFatBinary(s->fat_binary);
    __hipUnregisterFatBinary(s->variable_binary);
    GOOD(hipDevicePrimaryCtxReset(0));
    BAD(hipDevicePrimaryCtxReset(7));
    GOOD(hipDeviceReset());
    free(s->kernels);
    free(s->variables);
}

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    static struct Setup setup;
    set_up(&setup, argv);
    void (*const parts[])(struct Setup*) = {
        devices,     contexts,           errors,         memory,          host_memory,     pools,
        copies,      fills,              streams,        per_thread_streams, events,       modules,
        launches,    graph_shapes,       graph_clones,   kernel_nodes,    copy_nodes,      other_nodes,
        ready_graphs, lost_by_graphs,    captures,       captured_graphs, joined_captures, spoilt_captures,
        captures_of_threads, symbol_nodes, user_objects, node_attributes, graph_descriptions, arrays, textures,
        values,      memory_of_graphs,   nodes_of_drivers, lists_of_devices, libraries,    graphics,     mappings,
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) parts[i](&setup);
    tear_down(&setup);
    printf("%d failures\n", failures);
    return failures != 0;
}
