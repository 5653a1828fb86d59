// Grids and blocks of one to three dimensions, every built-in index, other ways to launch, __launch_bounds__, blocks of 1 to 1024 threads.
#include "check.h"
#include "runtime.h"

// What a thread sees, packed: 12 values a thread.
extern "C" __global__ void indices(unsigned* out) {
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    unsigned* r = out + 12 * (block * blockDim.x * blockDim.y * blockDim.z + thread);
    r[0] = threadIdx.x, r[1] = threadIdx.y, r[2] = threadIdx.z;
    r[3] = blockIdx.x, r[4] = blockIdx.y, r[5] = blockIdx.z;
    r[6] = blockDim.x, r[7] = blockDim.y, r[8] = blockDim.z;
    r[9] = gridDim.x, r[10] = gridDim.y, r[11] = gridDim.z;
}

extern "C" __global__ void fill(int* out, int value, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = value + i;
}

extern "C" __global__ void __launch_bounds__(128) bounded(int* out) { out[threadIdx.x] = static_cast<int>(blockDim.x) - static_cast<int>(threadIdx.x); }

// Only x is used, so the compiler leaves the other indices away.
extern "C" __global__ void only_block_y(unsigned* out) {
    if (threadIdx.x == 0) atomicAdd(&out[blockIdx.y], 1u);
}

static void check_indices(dim3 grid, dim3 block) {
    unsigned blocks = grid.x * grid.y * grid.z, threads = block.x * block.y * block.z;
    std::vector<unsigned> want;
    for (unsigned b = 0; b < blocks; b++)
        for (unsigned t = 0; t < threads; t++) {
            unsigned r[12] = {t % block.x, t / block.x % block.y, t / block.x / block.y, b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y,
                              block.x, block.y, block.z, grid.x, grid.y, grid.z};
            want.insert(want.end(), r, r + 12);
        }
    DeviceArray<unsigned> out(want.size());
    out.fill_bytes(0xff);
    indices<<<grid, block>>>(out.get());
    HIP_CHECK(hipGetLastError());
    check::equal("indices", out.download(), want);
}

// hipConfigureCall, hipSetupArgument, hipLaunchByPtr: offsets are those of the kernel's layout, in any order.
static void one_argument_at_a_time(const DeviceArray<int>& out) {
    const auto kernel = reinterpret_cast<const void*>(fill);
    int* pointer = out.get();
    const int n = static_cast<int>(out.count());
    std::vector<int> want(out.count());
    hipStream_t stream;
    HIP_CHECK(hipStreamCreate(&stream));
    auto launch = [&](dim3 grid, dim3 block, size_t shared, int value, hipError_t wanted) {
        HIP_CHECK(hipConfigureCall(grid, block, shared, stream));
        HIP_CHECK(hipSetupArgument(&n, sizeof n, 12));
        HIP_CHECK(hipSetupArgument(&value, sizeof value, 8));
        HIP_CHECK(hipSetupArgument(&pointer, sizeof pointer, 0));
        EXPECT_ERROR(hipLaunchByPtr(kernel), wanted);
    };
    launch(dim3(8), dim3(128), 0, 300, hipSuccess);
    HIP_CHECK(hipStreamSynchronize(stream));
    for (int i = 0; i < n; i++) want[i] = 300 + i;
    check::equal("hipLaunchByPtr", out.download(), want);
    // What is refused is used up, too.
    launch(dim3(8), dim3(0), 0, 1, hipErrorInvalidValue);
    launch(dim3(0), dim3(64), 0, 1, hipErrorInvalidValue);
    launch(dim3(1), dim3(64), 65537, 1, hipErrorInvalidValue);
    HIP_CHECK(hipConfigureCall(dim3(1), dim3(64), 0, stream));
    EXPECT_ERROR(hipLaunchByPtr(&n), hipErrorInvalidDeviceFunction);

    // The last configuration is the first to be launched.
    for (int value : {7, 5}) {
        HIP_CHECK(hipConfigureCall(dim3(value == 7 ? 1 : 8), dim3(128), 0, stream));
        HIP_CHECK(hipSetupArgument(&pointer, sizeof pointer, 0));
        HIP_CHECK(hipSetupArgument(&value, sizeof value, 8));
        HIP_CHECK(hipSetupArgument(&n, sizeof n, 12));
    }
    HIP_CHECK(hipLaunchByPtr(kernel));
    HIP_CHECK(hipLaunchByPtr(kernel));
    HIP_CHECK(hipStreamSynchronize(stream));
    for (int i = 0; i < n; i++) want[i] = (i < 128 ? 7 : 5) + i;
    check::equal("two configurations", out.download(), want);
    (void)hipGetLastError(); // some releases keep those errors
    // AMD's runtime crashes.
    if (check::amds_release() == 0) {
        EXPECT_ERROR(hipSetupArgument(&n, sizeof n, 0), hipErrorMissingConfiguration);
        EXPECT_ERROR(hipLaunchByPtr(kernel), hipErrorMissingConfiguration);
        HIP_CHECK(hipConfigureCall(dim3(1), dim3(64), 0, stream));
        EXPECT_ERROR(hipSetupArgument(nullptr, 8, 0), hipErrorInvalidValue);
        EXPECT_ERROR(hipSetupArgument(&n, sizeof n, SIZE_MAX), hipErrorInvalidValue);
        EXPECT_ERROR(hipLaunchByPtr(nullptr), hipErrorInvalidDeviceFunction);
    }
    HIP_CHECK(hipStreamDestroy(stream));
}

int main() {
    check::begin("launch_dims");
    for (unsigned threads : {1u, 2u, 63u, 64u, 65u, 127u, 200u, 256u, 1000u, 1024u}) check_indices(3, threads);
    check_indices(dim3(5, 4), dim3(16, 8));
    check_indices(dim3(2, 3, 4), dim3(4, 5, 6));
    check_indices(dim3(1, 1, 7), dim3(1, 1, 64));
    check_indices(dim3(1, 9), dim3(3, 1, 31));
    check_indices(dim3(100), dim3(7, 3));

    const int n = 1000;
    std::vector<int> want(n);
    auto expect_from = [&](int first) {
        for (int i = 0; i < n; i++) want[i] = first + i;
    };
    DeviceArray<int> out(n);
    {
        int* pointer = out.get();
        int value = 5, count = n;
        void* arguments[] = {&pointer, &value, &count};
        HIP_CHECK(hipLaunchKernel(reinterpret_cast<const void*>(fill), dim3(8), dim3(128), arguments, 0, nullptr));
        expect_from(5);
        check::equal("hipLaunchKernel", out.download(), want);
    }
    hipLaunchKernelGGL(fill, dim3(4), dim3(256), 0, nullptr, out.get(), -3, n);
    HIP_CHECK(hipGetLastError());
    expect_from(-3);
    check::equal("hipLaunchKernelGGL", out.download(), want);
    {
        hipEvent_t start, stop;
        HIP_CHECK(hipEventCreate(&start));
        HIP_CHECK(hipEventCreate(&stop));
        int* pointer = out.get();
        int value = 70, count = n;
        void* arguments[] = {&pointer, &value, &count};
        HIP_CHECK(hipExtLaunchKernel(reinterpret_cast<const void*>(fill), dim3(16), dim3(64), arguments, 0, nullptr, start, stop, 0));
        HIP_CHECK(hipEventSynchronize(stop));
        float ms = -1;
        HIP_CHECK(hipEventElapsedTime(&ms, start, stop));
        EXPECT(ms >= 0);
        expect_from(70);
        check::equal("hipExtLaunchKernel", out.download(), want);
        HIP_CHECK(hipEventDestroy(start));
        HIP_CHECK(hipEventDestroy(stop));
    }
    one_argument_at_a_time(out);
    {
        DeviceArray<int> small(128);
        bounded<<<1, 128>>>(small.get());
        HIP_CHECK(hipGetLastError());
        std::vector<int> expected(128);
        for (int i = 0; i < 128; i++) expected[i] = 128 - i;
        check::equal("launch bounds", small.download(), expected);
        DeviceArray<unsigned> counts(5);
        counts.fill_bytes(0);
        only_block_y<<<dim3(3, 5, 2), 96>>>(counts.get());
        HIP_CHECK(hipGetLastError());
        check::equal("block y", counts.download(), std::vector<unsigned>(5, 6));
    }
    return check::finish();
}
