// Tiles of an image go to the other device, are turned there and come back to another place: copies of rows and slices between pitched memory.
#include "../pair.h"

namespace {

constexpr int kWidth = 60, kHeight = 24, kDepth = 3, kTile = 12;

__global__ void turn(uint16_t* tile) {
    const int at = pair::thread();
    if (at < kTile * kTile / 2) {
        const uint16_t value = tile[at];
        tile[at] = tile[kTile * kTile - 1 - at];
        tile[kTile * kTile - 1 - at] = value;
    }
}

} // namespace

int main(int argc, char** argv) {
    pair::begin("boxes", argc, argv);
    check::Rng rng(6);
    const auto image = rng.bits<uint16_t>(kWidth * kHeight * kDepth);
    auto want = image;
    hipPitchedPtr pitched;
    pair::enter(0);
    HIP_CHECK(hipMalloc3D(&pitched, make_hipExtent(kWidth * sizeof(uint16_t), kHeight, kDepth)));
    hipMemcpy3DParms up = {};
    up.srcPtr = make_hipPitchedPtr(const_cast<uint16_t*>(image.data()), kWidth * sizeof(uint16_t), kWidth, kHeight);
    up.dstPtr = pitched;
    up.extent = make_hipExtent(kWidth * sizeof(uint16_t), kHeight, kDepth);
    up.kind = hipMemcpyHostToDevice;
    HIP_CHECK(hipMemcpy3D(&up));
    pair::Queue queues[2] = {pair::Queue(0), pair::Queue(1)};
    uint16_t* tile = pair::allocate<uint16_t>(1, kTile * kTile);
    const hipPitchedPtr there = make_hipPitchedPtr(tile, kTile * sizeof(uint16_t), kTile, kTile);
    int count = 0;
    for (int slice = 0; slice < kDepth; slice++)
        for (int row = 0; row < kHeight; row += kTile)
            for (int column = 0; column < kWidth; column += kTile, count++) {
                if (count == 14) pair::middle();
                const hipExtent size = make_hipExtent(kTile * sizeof(uint16_t), kTile, 1);
                // Out by a copy of a box, on the stream of the device that gets it.
                hipMemcpy3DParms out = {};
                out.srcPtr = pitched;
                out.srcPos = make_hipPos(column * sizeof(uint16_t), row, slice);
                out.dstPtr = there;
                out.extent = size;
                out.kind = hipMemcpyDeviceToDevice;
                queues[1].after(queues[0]);
                pair::enter(1);
                HIP_CHECK(hipMemcpy3DAsync(&out, queues[1].stream));
                pair::copies += 2;
                queues[1].launch(turn, kTile * kTile / 2, tile);
                // Back by a copy of rows, on the stream of the device that gets it.
                queues[0].after(queues[1]);
                char* to = static_cast<char*>(pitched.ptr) + (slice * kHeight + row) * pitched.pitch + column * sizeof(uint16_t);
                HIP_CHECK(hipMemcpy2DAsync(to, pitched.pitch, tile, kTile * sizeof(uint16_t), kTile * sizeof(uint16_t), kTile,
                                           hipMemcpyDeviceToDevice, queues[0].stream));
                for (int y = 0; y < kTile; y++)
                    for (int x = 0; x < kTile; x++)
                        want[(slice * kHeight + row + y) * kWidth + column + x] =
                            image[(slice * kHeight + row + kTile - 1 - y) * kWidth + column + kTile - 1 - x];
            }
    pair::wait(queues[0].stream);
    pair::enter(0);
    std::vector<uint16_t> got(image.size());
    hipMemcpy3DParms down = {};
    down.srcPtr = pitched;
    down.dstPtr = make_hipPitchedPtr(got.data(), kWidth * sizeof(uint16_t), kWidth, kHeight);
    down.extent = up.extent;
    down.kind = hipMemcpyDeviceToHost;
    HIP_CHECK(hipMemcpy3D(&down));
    pair::looks++;
    check::equal("image", got, want);
    HIP_CHECK(hipFree(pitched.ptr));
    HIP_CHECK(hipFree(tile));
    for (pair::Queue& queue : queues) queue.close();
    return pair::finish();
}
