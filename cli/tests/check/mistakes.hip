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
    (void)hipHostFree(memory);      // function
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
    if (!strcmp(what, "clean")) clean();
    if (!strcmp(what, "crash")) { host_mistakes(); abort(); }
    puts("over");
    return argc > 2 ? atoi(argv[2]) : 0;
}
