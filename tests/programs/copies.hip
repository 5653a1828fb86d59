// One-dimensional copies and fills: every direction and form, offsets, sizes of one byte to several megabytes, all memset widths, stream order.
#include "check.h"

extern "C" __global__ void increment(unsigned char* data, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i]++;
}

static void sizes(check::Rng& rng) {
    for (size_t size : {size_t{1}, size_t{3}, size_t{4096}, size_t{65537}, size_t{3000001}}) {
        std::vector<unsigned char> in = rng.bits<unsigned char>(size), out(size);
        DeviceArray<unsigned char> a(in), b(size);
        HIP_CHECK(hipMemcpy(b.get(), a.get(), size, hipMemcpyDeviceToDevice));
        HIP_CHECK(hipMemcpy(out.data(), b.get(), size, hipMemcpyDeviceToHost));
        check::equal("round trip", out, in);
    }
}

static void forms(check::Rng& rng) {
    const size_t n = 1000;
    hipStream_t stream;
    HIP_CHECK(hipStreamCreate(&stream));
    std::vector<unsigned char> in = rng.bits<unsigned char>(n), out(n), want = in;
    DeviceArray<unsigned char> a(n), b(n);
    hipDeviceptr_t da = a.get(), db = b.get();
    auto clear = [&] {
        std::fill(out.begin(), out.end(), 0);
        a.fill_bytes(0);
        b.fill_bytes(0);
    };

    clear();
    HIP_CHECK(hipMemcpyHtoD(da, in.data(), n));
    HIP_CHECK(hipMemcpyDtoD(db, da, n));
    HIP_CHECK(hipMemcpyDtoH(out.data(), db, n));
    check::equal("HtoD, DtoD, DtoH", out, want);

    clear();
    HIP_CHECK(hipMemcpyHtoDAsync(da, in.data(), n, stream));
    HIP_CHECK(hipMemcpyDtoDAsync(db, da, n, stream));
    HIP_CHECK(hipMemcpyDtoHAsync(out.data(), db, n, stream));
    HIP_CHECK(hipStreamSynchronize(stream));
    check::equal("the same, asynchronous", out, want);

    clear();
    HIP_CHECK(hipMemcpyAsync(da, in.data(), n, hipMemcpyHostToDevice, stream));
    HIP_CHECK(hipMemcpyAsync(db, da, n, hipMemcpyDeviceToDevice, stream));
    HIP_CHECK(hipMemcpyAsync(out.data(), db, n, hipMemcpyDeviceToHost, stream));
    HIP_CHECK(hipStreamSynchronize(stream));
    check::equal("hipMemcpyAsync", out, want);

    clear();
    HIP_CHECK(hipMemcpyWithStream(da, in.data(), n, hipMemcpyHostToDevice, stream));
    HIP_CHECK(hipMemcpyWithStream(out.data(), da, n, hipMemcpyDeviceToHost, stream));
    check::equal("hipMemcpyWithStream", out, want);

    // The library finds the direction.
    clear();
    HIP_CHECK(hipMemcpy(da, in.data(), n, hipMemcpyDefault));
    HIP_CHECK(hipMemcpy(db, da, n, hipMemcpyDefault));
    HIP_CHECK(hipMemcpy(out.data(), db, n, hipMemcpyDefault));
    check::equal("hipMemcpyDefault", out, want);
    std::vector<unsigned char> host(n);
    HIP_CHECK(hipMemcpy(host.data(), in.data(), n, hipMemcpyHostToHost));
    check::equal("host to host", host, want);

    // Parts, at offsets that are not aligned; nothing else changes.
    clear();
    HIP_CHECK(hipMemcpy(a.get() + 17, in.data() + 3, 401, hipMemcpyHostToDevice));
    HIP_CHECK(hipMemcpy(b.get() + 500, a.get() + 20, 333, hipMemcpyDeviceToDevice));
    std::vector<unsigned char> part(n);
    std::copy(in.begin() + 6, in.begin() + 6 + 333, part.begin() + 500);
    check::equal("parts", b.download(), part);
    HIP_CHECK(hipMemcpy(out.data() + 1, b.get() + 501, 7, hipMemcpyDeviceToHost));
    EXPECT(out[0] == 0 && std::equal(out.begin() + 1, out.begin() + 8, part.begin() + 501) && out[8] == 0);
    HIP_CHECK(hipMemcpy(a.get(), in.data(), 0, hipMemcpyHostToDevice)); // nothing

    // A source in host memory may be changed as soon as the call is back.
    clear();
    std::vector<unsigned char> changing = in;
    HIP_CHECK(hipMemcpy(a.get(), changing.data(), n, hipMemcpyHostToDevice));
    std::fill(changing.begin(), changing.end(), 0xee);
    increment<<<(n + 255) / 256, 256>>>(a.get(), n);
    HIP_CHECK(hipGetLastError());
    for (size_t i = 0; i < n; i++) want[i] = static_cast<unsigned char>(in[i] + 1);
    check::equal("copied at once", a.download(), want);

    // Copies and kernels in one stream, many of them, without waiting.
    for (int k = 0; k < 20; k++) {
        increment<<<(n + 255) / 256, 256, 0, stream>>>(a.get(), n);
        HIP_CHECK(hipMemcpyAsync(b.get(), a.get(), n, hipMemcpyDeviceToDevice, stream));
        HIP_CHECK(hipMemcpyAsync(a.get(), b.get(), n, hipMemcpyDeviceToDevice, stream));
    }
    HIP_CHECK(hipStreamSynchronize(stream));
    for (unsigned char& v : want) v = static_cast<unsigned char>(v + 20);
    check::equal("in stream order", b.download(), want);
    HIP_CHECK(hipStreamDestroy(stream));
}

static void fills() {
    const size_t n = 1000;
    hipStream_t stream;
    HIP_CHECK(hipStreamCreate(&stream));
    DeviceArray<unsigned> data(n);
    std::vector<unsigned> want(n);
    auto fill = [&](size_t from, size_t to, unsigned value) { std::fill(want.begin() + static_cast<long>(from), want.begin() + static_cast<long>(to), value); };
    hipDeviceptr_t words = data.get();

    HIP_CHECK(hipMemset(data.get(), 0x5a, n * 4));
    fill(0, n, 0x5a5a5a5a);
    HIP_CHECK(hipMemsetAsync(data.get() + 10, 0x1ff, 40, stream)); // the low byte counts
    fill(10, 20, 0xffffffff);
    HIP_CHECK(hipMemsetD32(data.get() + 100, static_cast<int>(0xdeadbeef), 50));
    fill(100, 150, 0xdeadbeef);
    HIP_CHECK(hipMemsetD32Async(data.get() + 200, 123456789, 1, stream));
    fill(200, 201, 123456789);
    HIP_CHECK(hipMemsetD16(data.get() + 300, 0xabcd, 20));
    fill(300, 310, 0xabcdabcd);
    HIP_CHECK(hipMemsetD16Async(data.get() + 310, 0x1234, 2, stream));
    fill(310, 311, 0x12341234);
    HIP_CHECK(hipMemsetD8(data.get() + 400, 0x77, 4));
    fill(400, 401, 0x77777777);
    HIP_CHECK(hipMemsetD8Async(data.get() + 401, 0x01, 400, stream));
    fill(401, 501, 0x01010101);
    HIP_CHECK(hipStreamSynchronize(stream));
    HIP_CHECK(hipDeviceSynchronize());
    check::equal("fills", data.download(), want);

    // One byte, at an odd address.
    HIP_CHECK(hipMemset(static_cast<unsigned char*>(words) + 4001 - 3000, 0, 1));
    want[250] &= 0xffff00ff;
    HIP_CHECK(hipMemset(data.get(), 0, 0));
    check::equal("one byte", data.download(), want);
    HIP_CHECK(hipStreamDestroy(stream));
}

int main() {
    check::begin("copies");
    check::Rng rng(33);
    sizes(rng);
    forms(rng);
    fills();
    return check::finish();
}
