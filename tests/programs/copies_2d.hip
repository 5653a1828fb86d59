// Two- and three-dimensional copies and fills: pitched memory, rectangles inside others, all directions, used by a kernel.
#include "check.h"

// Adds the column number to each value of a pitched array.
extern "C" __global__ void add_columns(int* data, size_t pitch, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) reinterpret_cast<int*>(reinterpret_cast<char*>(data) + y * pitch)[x] += x;
}

int main() {
    check::begin("copies_2d");
    check::Rng rng(34);
    const int width = 37, height = 23;
    const size_t row = width * sizeof(int);
    std::vector<int> in = rng.bits<int>(width * height), out(in.size()), want = in;
    for (int& v : in) v &= 0xffffff;
    want = in;
    hipStream_t stream;
    HIP_CHECK(hipStreamCreate(&stream));

    // Host, tight rows -> device, pitched -> kernel -> host.
    int* pitched = nullptr;
    size_t pitch = 0;
    HIP_CHECK(hipMallocPitch(reinterpret_cast<void**>(&pitched), &pitch, row, height));
    EXPECT(pitch >= row && pitch % 4 == 0);
    HIP_CHECK(hipMemcpy2D(pitched, pitch, in.data(), row, row, height, hipMemcpyHostToDevice));
    add_columns<<<dim3(2, 6), dim3(32, 4)>>>(pitched, pitch, width, height);
    HIP_CHECK(hipGetLastError());
    HIP_CHECK(hipMemcpy2D(out.data(), row, pitched, pitch, row, height, hipMemcpyDeviceToHost));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) want[y * width + x] += x;
    check::equal("pitched", out, want);

    // A rectangle of it, device to device, into the middle of a tight array.
    DeviceArray<int> tight(width * height);
    tight.fill_bytes(0);
    HIP_CHECK(hipMemcpy2DAsync(tight.get() + 5 * width + 7, row, reinterpret_cast<char*>(pitched) + 2 * pitch + 3 * sizeof(int), pitch, 11 * sizeof(int), 13,
                               hipMemcpyDeviceToDevice, stream));
    HIP_CHECK(hipStreamSynchronize(stream));
    std::vector<int> middle(width * height);
    for (int y = 0; y < 13; y++)
        for (int x = 0; x < 11; x++) middle[(y + 5) * width + x + 7] = want[(y + 2) * width + x + 3];
    check::equal("rectangle", tight.download(), middle);

    // Out of it into a wider host array, asynchronously; what is around stays.
    const int wide = 50;
    std::vector<int> host(wide * 30, -1), host_want = host;
    HIP_CHECK(hipMemcpy2DAsync(host.data() + 4 * wide + 2, wide * sizeof(int), tight.get() + 5 * width + 7, row, 11 * sizeof(int), 13, hipMemcpyDeviceToHost, stream));
    HIP_CHECK(hipStreamSynchronize(stream));
    for (int y = 0; y < 13; y++)
        for (int x = 0; x < 11; x++) host_want[(y + 4) * wide + x + 2] = middle[(y + 5) * width + x + 7];
    check::equal("into a wider host array", host, host_want);

    // Host to device asynchronously, from the wider array; a source that changes afterwards.
    HIP_CHECK(hipMemcpy2DAsync(tight.get(), row, host.data() + 4 * wide + 2, wide * sizeof(int), 11 * sizeof(int), 13, hipMemcpyHostToDevice, stream));
    HIP_CHECK(hipStreamSynchronize(stream));
    std::fill(host.begin(), host.end(), 0);
    for (int y = 0; y < 13; y++)
        for (int x = 0; x < 11; x++) middle[y * width + x] = host_want[(y + 4) * wide + x + 2];
    check::equal("from a wider host array", tight.download(), middle);

    // Fills of rectangles.
    HIP_CHECK(hipMemset2D(pitched, pitch, 0, row, height));
    HIP_CHECK(hipMemset2DAsync(reinterpret_cast<char*>(pitched) + pitch + 4, pitch, 0x3c, 9 * sizeof(int), 5, stream));
    HIP_CHECK(hipStreamSynchronize(stream));
    HIP_CHECK(hipMemcpy2D(out.data(), row, pitched, pitch, row, height, hipMemcpyDeviceToHost));
    std::vector<int> filled(width * height);
    for (int y = 1; y < 6; y++)
        for (int x = 1; x < 10; x++) filled[y * width + x] = 0x3c3c3c3c;
    check::equal("filled", out, filled);
    HIP_CHECK(hipMemcpy2D(out.data(), row, pitched, pitch, 0, height, hipMemcpyDeviceToHost)); // nothing
    HIP_CHECK(hipFree(pitched));

    // Three dimensions: a box in a box.
    const int nx = 12, ny = 9, nz = 7;
    std::vector<int> box = rng.bits<int>(nx * ny * nz), box_out(box.size(), 0), box_want(box.size(), 0);
    DeviceArray<int> dbox(box.size());
    dbox.fill_bytes(0);
    hipMemcpy3DParms p = {};
    p.srcPtr = make_hipPitchedPtr(box.data(), nx * sizeof(int), nx, ny);
    p.dstPtr = make_hipPitchedPtr(dbox.get(), nx * sizeof(int), nx, ny);
    p.srcPos = make_hipPos(2 * sizeof(int), 1, 3);
    p.dstPos = make_hipPos(5 * sizeof(int), 4, 1);
    p.extent = make_hipExtent(6 * sizeof(int), 5, 4);
    p.kind = hipMemcpyHostToDevice;
    HIP_CHECK(hipMemcpy3D(&p));
    HIP_CHECK(hipMemcpy(box_out.data(), dbox.get(), box.size() * sizeof(int), hipMemcpyDeviceToHost));
    for (int z = 0; z < 4; z++)
        for (int y = 0; y < 5; y++)
            for (int x = 0; x < 6; x++) box_want[((z + 1) * ny + y + 4) * nx + x + 5] = box[((z + 3) * ny + y + 1) * nx + x + 2];
    check::equal("box", box_out, box_want);

    HIP_CHECK(hipStreamDestroy(stream));
    return check::finish();
}
