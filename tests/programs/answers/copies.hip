// Copies and sets, with every kind of memory at either end.
#include "../answers.h"

using namespace answers;

static char *device, *other, *pinned, *managed;
static char pageable[8192];
__device__ int symbol[64];
static char* gone;

int main(int count, char** arguments) {
    begin(count, arguments);
    hipMalloc(&device, 4096);
    hipMalloc(&other, 4096);
    hipHostMalloc(&pinned, 4096);
    hipMallocManaged(&managed, 4096);
    hipMalloc(&gone, 64 << 20);
    hipFree(gone);
    hipStream_t stream;
    hipStreamCreate(&stream);

    auto to = any<void*>({OF(device), OF(pageable), OF(pinned), OF(managed), OF(device + 2048), OF(nullptr)});
    auto from = any<const void*>({OF(pageable + 4096), OF(other), OF(pinned + 2048), OF(managed + 2048), OF(device + 2048), OF(nullptr)});
    auto sizes = any<size_t>({OF(64), OF(0), OF(4096), OF(8192)});
    auto kinds = any<hipMemcpyKind>({OF(hipMemcpyDefault), OF(hipMemcpyHostToHost), OF(hipMemcpyHostToDevice), OF(hipMemcpyDeviceToHost), OF(hipMemcpyDeviceToDevice), OF(hipMemcpyDeviceToDeviceNoCU), {"5", hipMemcpyKind(5)}, {"-1", hipMemcpyKind(-1)}});
    auto streams = any<hipStream_t>({OF(stream), OF(nullptr), OF(hipStreamPerThread), OF(hipStreamLegacy)});
    // A copy between pieces of memory of the process that is too long would only be undefined.
    each("hipMemcpy", [](void* dst, const void* src, size_t size, hipMemcpyKind kind) { return hipMemcpy(dst, src, size, kind); }, settle, to, from, any<size_t>({OF(64), OF(0)}), kinds);
    others_max = 3;
    each("hipMemcpyAsync", [](void* dst, const void* src, size_t size, hipMemcpyKind kind, hipStream_t on) { return hipMemcpyAsync(dst, src, size, kind, on); }, settle, to, from, any<size_t>({OF(64), OF(0)}), kinds, any<hipStream_t>({OF(stream)}));
    others_max = 2;
    each(FUNCTION(hipMemcpyWithStream), settle, to, from, any<size_t>({OF(64), OF(0)}), kinds, streams);
    each("hipMemcpy", [](void* dst, const void* src, size_t size, hipMemcpyKind kind) { return hipMemcpy(dst, src, size, kind); }, settle, any<void*>({OF(device), OF(managed), OF(pinned)}), any<const void*>({OF(other), OF(managed), OF(pinned)}), any<size_t>({OF(4096), OF(4097), OF(8192)}), kinds);

    auto ends = any<hipDeviceptr_t>({OF(device), OF(device + 4000), OF(pinned), OF(managed), OF(nullptr)});
    auto host = any<void*>({OF(pageable), OF(pinned), OF(nullptr)});
    each(FUNCTION(hipMemcpyHtoD), settle, ends, host, sizes);
    each("hipMemcpyDtoH", [](void* dst, hipDeviceptr_t src, size_t size) { return hipMemcpyDtoH(dst, src, size); }, settle, host, ends, any<size_t>({OF(64), OF(0)}));
    each(FUNCTION(hipMemcpyDtoD), settle, ends, any<hipDeviceptr_t>({OF(other), OF(managed), OF(nullptr)}), sizes);
    each(FUNCTION(hipMemcpyHtoDAsync), settle, ends, host, sizes, streams);
    each(FUNCTION(hipMemcpyDtoHAsync), settle, host, ends, any<size_t>({OF(64), OF(0)}), streams);
    each(FUNCTION(hipMemcpyDtoDAsync), settle, ends, any<hipDeviceptr_t>({OF(other), OF(managed), OF(nullptr)}), sizes, streams);
    each(FUNCTION(hipMemcpyPeer), settle, any<void*>({OF(device), OF(nullptr)}), any<int>({OF(0), OF(1), OF(-1)}), any<const void*>({OF(other), OF(nullptr)}), any<int>({OF(0), OF(1), OF(-1)}), sizes);
    each("hipMemcpyPeerAsync", [](void* dst, int a, const void* src, int b, size_t size, hipStream_t on) { return hipMemcpyPeerAsync(dst, a, src, b, size, on); }, settle, any<void*>({OF(device), OF(nullptr)}), any<int>({OF(0), OF(1), OF(-1)}), any<const void*>({OF(other), OF(nullptr)}), any<int>({OF(0), OF(1), OF(-1)}), sizes, streams);

    auto pitches = any<size_t>({OF(64), OF(63), OF(0), OF(128), OF(SIZE_MAX)});
    auto widths = any<size_t>({OF(64), OF(0), OF(65)});
    auto heights = any<size_t>({OF(4), OF(0), OF(1)});
    each("hipMemcpy2D", [](void* dst, size_t dp, const void* src, size_t sp, size_t w, size_t h, hipMemcpyKind kind) { return hipMemcpy2D(dst, dp, src, sp, w, h, kind); }, settle, any<void*>({OF(device), OF(pageable), OF(nullptr)}), pitches, any<const void*>({OF(other), OF(pageable + 4096), OF(nullptr)}), pitches, widths, heights, kinds);
    each("hipMemcpy2DAsync", [](void* dst, size_t dp, const void* src, size_t sp, size_t w, size_t h, hipMemcpyKind kind, hipStream_t on) { return hipMemcpy2DAsync(dst, dp, src, sp, w, h, kind, on); }, settle, any<void*>({OF(device), OF(pageable), OF(nullptr)}), pitches, any<const void*>({OF(other), OF(pageable + 4096), OF(nullptr)}), pitches, widths, heights, kinds, streams);
    static hipMemcpy3DParms copy;
    each("hipMemcpy3D", [](void* dst, size_t dp, const void* src, size_t sp, size_t w, size_t h, size_t d, hipMemcpyKind kind) {
        copy = {};
        copy.dstPtr = make_hipPitchedPtr(dst, dp, 64, 4);
        copy.srcPtr = make_hipPitchedPtr(const_cast<void*>(src), sp, 64, 4);
        copy.extent = make_hipExtent(w, h, d);
        copy.kind = kind;
        return hipMemcpy3D(&copy);
    }, settle, any<void*>({OF(device), OF(pageable), OF(nullptr)}), pitches, any<const void*>({OF(other), OF(pageable + 4096), OF(nullptr)}), pitches, widths, heights, any<size_t>({OF(2), OF(0), OF(1)}), kinds);
    ONE(hipMemcpy3D(nullptr), nothing);
    ONE(hipMemcpy3DAsync(nullptr, stream), nothing);
    ONE(hipDrvMemcpy3D(nullptr), nothing);
    ONE(hipDrvMemcpy3DAsync(nullptr, stream), nothing);
    ONE(hipMemcpyParam2D(nullptr), nothing);
    ONE(hipMemcpyParam2DAsync(nullptr, stream), nothing);
    each("hipMemcpyParam2D", [](hipMemoryType dt, void* dst, size_t dp, hipMemoryType st, void* src, size_t sp, size_t w, size_t h) {
        hip_Memcpy2D of = {};
        of.dstMemoryType = dt, of.dstHost = dst, of.dstDevice = dst, of.dstPitch = dp;
        of.srcMemoryType = st, of.srcHost = src, of.srcDevice = src, of.srcPitch = sp;
        of.WidthInBytes = w, of.Height = h;
        return hipMemcpyParam2D(&of);
    }, settle, any<hipMemoryType>({OF(hipMemoryTypeDevice), OF(hipMemoryTypeUnified), OF(hipMemoryTypeArray), {"99", hipMemoryType(99)}}), any<void*>({OF(device), OF(nullptr)}), pitches, any<hipMemoryType>({OF(hipMemoryTypeHost), OF(hipMemoryTypeUnified), OF(hipMemoryTypeArray), {"99", hipMemoryType(99)}}), any<void*>({OF(pageable), OF(nullptr)}), pitches, widths, heights);
    each("hipDrvMemcpy3D", [](hipMemoryType dt, void* dst, size_t dp, size_t dh, hipMemoryType st, void* src, size_t sp, size_t sh, size_t w, size_t h, size_t d) {
        HIP_MEMCPY3D of = {};
        of.dstMemoryType = dt, of.dstHost = dst, of.dstDevice = dst, of.dstPitch = dp, of.dstHeight = dh;
        of.srcMemoryType = st, of.srcHost = src, of.srcDevice = src, of.srcPitch = sp, of.srcHeight = sh;
        of.WidthInBytes = w, of.Height = h, of.Depth = d;
        return hipDrvMemcpy3D(&of);
    }, settle, any<hipMemoryType>({OF(hipMemoryTypeDevice), OF(hipMemoryTypeUnified), {"99", hipMemoryType(99)}}), any<void*>({OF(device), OF(nullptr)}), pitches, any<size_t>({OF(4), OF(0), OF(3)}), any<hipMemoryType>({OF(hipMemoryTypeHost), OF(hipMemoryTypeUnified), {"99", hipMemoryType(99)}}), any<void*>({OF(pageable), OF(nullptr)}), pitches, any<size_t>({OF(4), OF(0), OF(3)}), widths, heights, any<size_t>({OF(2), OF(0)}));

    static const char unknown = 0;
    auto symbols = any<const void*>({{"symbol", HIP_SYMBOL(symbol)}, OF(&unknown), OF(nullptr)});
    auto lengths = any<size_t>({OF(64), OF(0), OF(256), OF(257)});
    auto offsets = any<size_t>({OF(0), OF(4), OF(192), OF(193), OF(256), OF(SIZE_MAX)});
    each("hipMemcpyToSymbol", [](const void* of, const void* src, size_t size, size_t offset, hipMemcpyKind kind) { return hipMemcpyToSymbol(of, src, size, offset, kind); }, settle, symbols, any<const void*>({OF(pageable), OF(device), OF(pinned), OF(nullptr)}), lengths, offsets, kinds);
    each("hipMemcpyFromSymbol", [](void* dst, const void* of, size_t size, size_t offset, hipMemcpyKind kind) { return hipMemcpyFromSymbol(dst, of, size, offset, kind); }, settle, any<void*>({OF(pageable), OF(device), OF(pinned), OF(nullptr)}), symbols, lengths, offsets, kinds);
    each("hipMemcpyToSymbolAsync", [](const void* of, const void* src, size_t size, size_t offset, hipMemcpyKind kind, hipStream_t on) { return hipMemcpyToSymbolAsync(of, src, size, offset, kind, on); }, settle, symbols, any<const void*>({OF(pageable), OF(device), OF(nullptr)}), lengths, offsets, kinds, streams);
    each("hipMemcpyFromSymbolAsync", [](void* dst, const void* of, size_t size, size_t offset, hipMemcpyKind kind, hipStream_t on) { return hipMemcpyFromSymbolAsync(dst, of, size, offset, kind, on); }, settle, any<void*>({OF(pageable), OF(device), OF(nullptr)}), symbols, lengths, offsets, kinds, streams);
    each("hipGetSymbolAddress", [](void** into, const void* of) { return hipGetSymbolAddress(into, of); }, nothing, any<void**>({OF(&results.pointer), OF(nullptr)}), symbols);
    each("hipGetSymbolSize", [](size_t* into, const void* of) { return hipGetSymbolSize(into, of); }, nothing, any<size_t*>({OF(&results.size), OF(nullptr)}), symbols);

    auto set = any<void*>({OF(device), OF(device + 2), OF(device + 1), OF(managed), OF(pinned), OF(pageable), OF(nullptr)});
    auto numbers = any<size_t>({OF(64), OF(0), OF(1024), OF(4096), OF(4097), OF(SIZE_MAX)});
    each(FUNCTION(hipMemset), settle, set, any<int>({OF(1), OF(-1)}), numbers);
    each(FUNCTION(hipMemsetD8), settle, set, any<unsigned char>({OF(1)}), numbers);
    each(FUNCTION(hipMemsetD16), settle, set, any<unsigned short>({OF(1)}), numbers);
    each(FUNCTION(hipMemsetD32), settle, set, any<int>({OF(1)}), numbers);
    each("hipMemsetAsync", [](void* dst, int v, size_t size, hipStream_t on) { return hipMemsetAsync(dst, v, size, on); }, settle, set, any<int>({OF(1)}), numbers, streams);
    each("hipMemsetD8Async", [](void* dst, unsigned char v, size_t size, hipStream_t on) { return hipMemsetD8Async(dst, v, size, on); }, settle, set, any<unsigned char>({OF(1)}), numbers, streams);
    each("hipMemsetD16Async", [](void* dst, unsigned short v, size_t size, hipStream_t on) { return hipMemsetD16Async(dst, v, size, on); }, settle, set, any<unsigned short>({OF(1)}), numbers, streams);
    each("hipMemsetD32Async", [](void* dst, int v, size_t size, hipStream_t on) { return hipMemsetD32Async(dst, v, size, on); }, settle, set, any<int>({OF(1)}), numbers, streams);
    each(FUNCTION(hipMemset2D), settle, any<void*>({OF(device), OF(pinned), OF(pageable), OF(nullptr)}), any<size_t>({OF(64), OF(63), OF(0), OF(128)}), any<int>({OF(1)}), widths, any<size_t>({OF(4), OF(0), OF(64), OF(65)}));
    each("hipMemset2DAsync", [](void* dst, size_t pitch, int v, size_t w, size_t h, hipStream_t on) { return hipMemset2DAsync(dst, pitch, v, w, h, on); }, settle, any<void*>({OF(device), OF(pinned), OF(pageable), OF(nullptr)}), any<size_t>({OF(64), OF(63), OF(0), OF(128)}), any<int>({OF(1)}), widths, any<size_t>({OF(4), OF(0), OF(64), OF(65)}), streams);
    each("hipMemset3D", [](void* dst, size_t pitch, size_t x, size_t y, size_t w, size_t h, size_t d) { return hipMemset3D(make_hipPitchedPtr(dst, pitch, x, y), 1, make_hipExtent(w, h, d)); }, settle, any<void*>({OF(device), OF(pinned), OF(pageable), OF(nullptr)}), any<size_t>({OF(64), OF(63), OF(0), OF(128)}), any<size_t>({OF(64), OF(0), OF(32)}), any<size_t>({OF(4), OF(0), OF(3)}), widths, heights, any<size_t>({OF(2), OF(0), OF(64)}));
    return 0;
}
