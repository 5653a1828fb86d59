// A program with one mistake, which its argument names. The lines with a mark (// name) are those that `hipr check` has to find.
#include <hip/hip_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

__device__ void put(float *to, int index, float value) {
    to[index] = value; // put
}

__global__ void fill(float *to, int count) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index <= count) put(to, index, 1.0f); // call
}

__global__ void neighbours(int *to) {
    __shared__ int all[256];
    all[threadIdx.x] = threadIdx.x; // write
    to[threadIdx.x] = all[(threadIdx.x + 64) % 256]; // read
}

static void *allocate(size_t len_bytes) {
    void *memory = nullptr;
    if (hipMalloc(&memory, len_bytes) != hipSuccess) exit(9); // allocation
    return memory;
}

static void out_of_bounds() {
    float *memory = static_cast<float *>(allocate(4000));
    fill<<<4, 256>>>(memory, 1000);
    (void)hipDeviceSynchronize();
    (void)hipFree(memory);
}

static void block_race() {
    int *memory = static_cast<int *>(allocate(1024));
    neighbours<<<1, 256>>>(memory);
    (void)hipDeviceSynchronize();
    (void)hipFree(memory);
}

static void host_mistakes() {
    char *memory = static_cast<char *>(allocate(4096));
    (void)hipFree(memory + 16);     // inside
    (void)hipHostFree(allocate(4096)); // function
    (void)hipFree(memory);          // free
    (void)hipFree(memory);          // again
    void *of_the_host = malloc(64);
    (void)hipFree(of_the_host);     // host
    free(of_the_host);
}

static void leak() {
    void *pinned = nullptr;
    for (int time = 0; time < 3; time++) allocate(1000); // leaks
    if (hipHostMalloc(&pinned, 500, 0) != hipSuccess) exit(9); // pinned
    (void)hipFree(allocate(10));
}

// Calls each function that allocates, with a size of its own, and each that frees, with what it does not free.
static void each() {
    void *memory = nullptr;
    size_t pitch = 0;
    hipDeviceptr_t address = nullptr;
    hipPitchedPtr pitched = {};
    hipMemPool_t pool = nullptr;
    hipArray_t no_array = static_cast<hipArray_t>(malloc(64));
    (void)hipMalloc(&memory, 256 * 1);
    (void)hipExtMallocWithFlags(&memory, 256 * 2, hipDeviceMallocDefault);
    (void)hipMallocManaged(&memory, 256 * 3, hipMemAttachGlobal);
    (void)hipHostMalloc(&memory, 256 * 4, 0);
    (void)hipHostAlloc(&memory, 256 * 5, 0);
    (void)hipMemAllocHost(&memory, 256 * 6);
    (void)hipMallocPitch(&memory, &pitch, 256, 7);
    (void)hipMemAllocPitch(&address, &pitch, 256, 8, 4);
    (void)hipMalloc3D(&pitched, hipExtent{256, 3, 3});
    (void)hipMallocAsync(&memory, 256 * 10, nullptr);
    (void)hipDeviceGetDefaultMemPool(&pool, 0);
    (void)hipMallocFromPoolAsync(&memory, 256 * 11, pool, nullptr);
    (void)hipFree(no_array);
    (void)hipFreeAsync(no_array, nullptr);
    (void)hipHostFree(no_array);
    (void)hipFreeHost(no_array);
    (void)hipFreeArray(no_array);
    (void)hipArrayDestroy(no_array);
    (void)hipIpcCloseMemHandle(no_array);
}

// A capture of the global mode forbids hipFree, whatever its pointer is: no mistake of the pointer.
static void capture() {
    hipStream_t stream = nullptr;
    hipGraph_t graph = nullptr;
    void *memory = allocate(4);
    if (hipStreamCreate(&stream) != hipSuccess) exit(9);
    if (hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal) != hipSuccess) exit(9);
    if (hipFree(memory) == hipSuccess) exit(9);
    (void)hipStreamEndCapture(stream, &graph);
    if (hipFree(memory) != hipSuccess) exit(9);
}

static void clean() {
    float *memory = static_cast<float *>(allocate(4000)), result = 0;
    fill<<<4, 256>>>(memory, 999);
    if (hipMemcpy(&result, memory + 999, sizeof result, hipMemcpyDeviceToHost) != hipSuccess || result != 1.0f) exit(9);
    (void)hipFree(memory);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "out-of-bounds")) out_of_bounds();
    if (!strcmp(what, "block-race")) block_race();
    if (!strcmp(what, "host")) host_mistakes();
    if (!strcmp(what, "leak")) leak();
    if (!strcmp(what, "each")) each();
    if (!strcmp(what, "capture")) capture();
    if (!strcmp(what, "clean")) clean();
    if (!strcmp(what, "crash")) { host_mistakes(); abort(); }
    puts("over");
    return argc > 2 ? atoi(argv[2]) : 0;
}
