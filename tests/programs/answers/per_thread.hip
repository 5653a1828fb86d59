// The functions for which the null stream is the thread's own.
#include "../answers.h"

#include <hip/amd_detail/amd_hip_runtime_pt_api.h>

using namespace answers;

__global__ void kernel() {}
__device__ int symbol[16];
static char unknown[64];

int main(int count, char** arguments) {
    begin(count, arguments);
    Results& r = results;
    static char host[4096];
    char *device = nullptr, *other = nullptr;
    hipMalloc(&device, 4096);
    hipMalloc(&other, 4096);
    hipStream_t stream;
    hipStreamCreate(&stream);
    auto streams = any<hipStream_t>({OF(stream), OF(nullptr), OF(hipStreamPerThread)});
    auto memory = any<void*>({OF(device), OF(host), OF(nullptr)});
    auto sources = any<const void*>({OF(other), OF(host), OF(nullptr)});
    auto sizes = any<size_t>({OF(64), OF(0), OF(1 << 20)});
    auto kinds = any<hipMemcpyKind>({OF(hipMemcpyDefault), OF(hipMemcpyHostToDevice), OF(hipMemcpyDeviceToHost), OF(hipMemcpyDeviceToDevice), OF(hipMemcpyHostToHost), {"9", hipMemcpyKind(9)}});
    auto right = any<hipMemcpyKind>({OF(hipMemcpyDefault), {"9", hipMemcpyKind(9)}});
    auto pitches = any<size_t>({OF(64), OF(0), OF(32)});
    auto rows = any<size_t>({OF(2), OF(0), OF(100)});

    each(FUNCTION(hipMemcpy_spt), settle, memory, sources, sizes, kinds);
    each("hipMemcpyAsync_spt", [](void* to, const void* from, size_t size, hipMemcpyKind kind, hipStream_t on) { return hipMemcpyAsync_spt(to, from, size, kind, on); }, settle, memory, sources, sizes, kinds, streams);
    each(FUNCTION(hipMemcpy2D_spt), settle, memory, pitches, sources, pitches, any<size_t>({OF(64), OF(0)}), rows, right);
    each("hipMemcpy2DAsync_spt", [](void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height, hipMemcpyKind kind, hipStream_t on) { return hipMemcpy2DAsync_spt(to, to_pitch, from, from_pitch, width, height, kind, on); }, settle, memory, pitches, sources, pitches, any<size_t>({OF(64), OF(0)}), rows, right, streams);
    static hipMemcpy3DParms deep;
    auto copy_3d = [](auto call) {
        return [call](bool is_null, void* to, const void* from, size_t pitch, size_t width, hipMemcpyKind kind, hipStream_t on) {
            deep = {};
            deep.dstPtr = {to, pitch, 64, 2}, deep.srcPtr = {const_cast<void*>(from), 64, 64, 2}, deep.extent = {width, 2, 1}, deep.kind = kind;
            return call(is_null ? nullptr : &deep, on);
        };
    };
    auto null_or_not = any<bool>({OF(false), OF(true)});
    each("hipMemcpy3D_spt", copy_3d([](const hipMemcpy3DParms* of, hipStream_t) { return hipMemcpy3D_spt(of); }), settle, null_or_not, memory, sources, pitches, any<size_t>({OF(64), OF(0), OF(65)}), right, any<hipStream_t>({OF(nullptr)}));
    each("hipMemcpy3DAsync_spt", copy_3d([](const hipMemcpy3DParms* of, hipStream_t on) { return hipMemcpy3DAsync_spt(of, on); }), settle, null_or_not, memory, sources, pitches, any<size_t>({OF(64), OF(0), OF(65)}), right, streams);
    each(FUNCTION(hipMemset_spt), settle, memory, any<int>({OF(1), OF(-1)}), sizes);
    each("hipMemsetAsync_spt", [](void* to, int value, size_t size, hipStream_t on) { return hipMemsetAsync_spt(to, value, size, on); }, settle, memory, any<int>({OF(1)}), sizes, streams);
    each(FUNCTION(hipMemset2D_spt), settle, memory, pitches, any<int>({OF(1)}), any<size_t>({OF(64), OF(0)}), rows);
    each("hipMemset2DAsync_spt", [](void* to, size_t pitch, int value, size_t width, size_t height, hipStream_t on) { return hipMemset2DAsync_spt(to, pitch, value, width, height, on); }, settle, memory, pitches, any<int>({OF(1)}), any<size_t>({OF(64), OF(0)}), rows, streams);
    each("hipMemset3D_spt", [](void* to, size_t pitch, size_t width, size_t height, size_t depth) { return hipMemset3D_spt(hipPitchedPtr{to, pitch, 64, 2}, 1, hipExtent{width, height, depth}); }, settle, memory, pitches, any<size_t>({OF(64), OF(0), OF(65)}), rows, any<size_t>({OF(1), OF(0)}));
    each("hipMemset3DAsync_spt", [](void* to, size_t pitch, size_t width, size_t height, hipStream_t on) { return hipMemset3DAsync_spt(hipPitchedPtr{to, pitch, 64, 2}, 1, hipExtent{width, height, 1}, on); }, settle, memory, pitches, any<size_t>({OF(64), OF(0), OF(65)}), rows, streams);
    auto symbols = any<const void*>({{"symbol", &symbol}, OF(unknown), OF(nullptr)});
    auto offsets = any<size_t>({OF(0), OF(32), OF(64)});
    auto some = any<size_t>({OF(32), OF(0), OF(65)});
    each(FUNCTION(hipMemcpyToSymbol_spt), settle, symbols, any<const void*>({OF(host), OF(other), OF(nullptr)}), some, offsets, any<hipMemcpyKind>({OF(hipMemcpyDefault), OF(hipMemcpyHostToDevice), OF(hipMemcpyDeviceToHost), OF(hipMemcpyHostToHost)}));
    each("hipMemcpyToSymbolAsync_spt", [](const void* to, const void* from, size_t size, size_t at, hipMemcpyKind kind, hipStream_t on) { return hipMemcpyToSymbolAsync_spt(to, from, size, at, kind, on); }, settle, symbols, any<const void*>({OF(host), OF(other), OF(nullptr)}), some, offsets, right, streams);
    each(FUNCTION(hipMemcpyFromSymbol_spt), settle, any<void*>({OF(host), OF(device), OF(nullptr)}), symbols, some, offsets, any<hipMemcpyKind>({OF(hipMemcpyDefault), OF(hipMemcpyHostToDevice), OF(hipMemcpyDeviceToHost), OF(hipMemcpyHostToHost)}));
    each("hipMemcpyFromSymbolAsync_spt", [](void* to, const void* from, size_t size, size_t at, hipMemcpyKind kind, hipStream_t on) { return hipMemcpyFromSymbolAsync_spt(to, from, size, at, kind, on); }, settle, any<void*>({OF(host), OF(device), OF(nullptr)}), symbols, some, offsets, right, streams);
    auto no_source = any<hipArray_const_t>({OF(nullptr)});
    auto no_array = any<hipArray_t>({OF(nullptr)});
    auto zero = any<size_t>({OF(0), OF(4)});
    each(FUNCTION(hipMemcpy2DFromArray_spt), nothing, memory, pitches, no_source, zero, zero, any<size_t>({OF(64), OF(0)}), rows, right);
    each("hipMemcpy2DFromArrayAsync_spt", [](void* to, size_t pitch, hipArray_const_t from, size_t width, hipMemcpyKind kind, hipStream_t on) { return hipMemcpy2DFromArrayAsync_spt(to, pitch, from, 0, 0, width, 1, kind, on); }, nothing, memory, pitches, no_source, any<size_t>({OF(64), OF(0)}), right, streams);
    each(FUNCTION(hipMemcpy2DToArray_spt), nothing, no_array, zero, zero, sources, pitches, any<size_t>({OF(64), OF(0)}), rows, right);
    each("hipMemcpy2DToArrayAsync_spt", [](hipArray_t to, const void* from, size_t pitch, size_t width, hipMemcpyKind kind, hipStream_t on) { return hipMemcpy2DToArrayAsync_spt(to, 0, 0, from, pitch, width, 1, kind, on); }, nothing, no_array, sources, pitches, any<size_t>({OF(64), OF(0)}), right, streams);
    each(FUNCTION(hipMemcpyFromArray_spt), nothing, memory, no_source, zero, zero, any<size_t>({OF(64), OF(0)}), right);

    hipEvent_t event;
    hipEventCreate(&event);
    auto events = any<hipEvent_t>({OF(event), OF(nullptr)});
    each(FUNCTION(hipStreamQuery_spt), nothing, streams);
    each(FUNCTION(hipStreamSynchronize_spt), nothing, streams);
    each(FUNCTION(hipStreamGetPriority_spt), nothing, streams, any<int*>({OF(&r.number), OF(nullptr)}));
    each(FUNCTION(hipStreamGetFlags_spt), nothing, streams, any<unsigned*>({OF(&r.flags), OF(nullptr)}));
    each("hipEventRecord_spt", [](hipEvent_t of, hipStream_t on) { return hipEventRecord_spt(of, on); }, nothing, events, streams);
    each("hipStreamWaitEvent_spt", [](hipStream_t on, hipEvent_t of, unsigned flags) { return hipStreamWaitEvent_spt(on, of, flags); }, nothing, streams, events, any<unsigned>({OF(0), OF(1), OF(2)}));
    each("hipLaunchKernel_spt", [](const void* of, unsigned grid, unsigned block, size_t lds, hipStream_t on) { return hipLaunchKernel_spt(of, dim3(grid), dim3(block), nullptr, lds, on); }, settle, any<const void*>({{"kernel", reinterpret_cast<const void*>(kernel)}, OF(unknown), OF(nullptr)}), any<unsigned>({OF(1), OF(0)}), any<unsigned>({OF(64), OF(0), OF(1025)}), any<size_t>({OF(0), OF(65537)}), streams);
    each("hipLaunchCooperativeKernel_spt", [](const void* of, unsigned grid, unsigned block, unsigned lds, hipStream_t on) { return hipLaunchCooperativeKernel_spt(of, dim3(grid), dim3(block), nullptr, lds, on); }, settle, any<const void*>({{"kernel", reinterpret_cast<const void*>(kernel)}, OF(unknown), OF(nullptr)}), any<unsigned>({OF(1), OF(0), OF(1000000)}), any<unsigned>({OF(64), OF(0), OF(1025)}), any<unsigned>({OF(0), OF(65537)}), streams);
    auto called = any<hipHostFn_t>({{"called", [](void*) {}}, OF(nullptr)});
    each("hipLaunchHostFunc_spt", [](hipStream_t on, hipHostFn_t of, void* with) { return hipLaunchHostFunc_spt(on, of, with); }, settle, streams, called, any<void*>({OF(nullptr)}));
    each("hipStreamAddCallback_spt", [](hipStream_t on, hipStreamCallback_t of, void* with, unsigned flags) { return hipStreamAddCallback_spt(on, of, with, flags); }, settle, streams, any<hipStreamCallback_t>({{"called", [](hipStream_t, hipError_t, void*) {}}, OF(nullptr)}), any<void*>({OF(nullptr)}), any<unsigned>({OF(0), OF(1)}));

    hipGraph_t graph;
    hipGraphCreate(&graph, 0);
    static hipGraphExec_t exec;
    hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0);
    each("hipGraphLaunch_spt", [](hipGraphExec_t of, hipStream_t on) { return hipGraphLaunch_spt(of, on); }, settle, any<hipGraphExec_t>({OF(exec), OF(nullptr)}), streams);
    auto modes = any<hipStreamCaptureMode>({OF(hipStreamCaptureModeGlobal), OF(hipStreamCaptureModeThreadLocal), OF(hipStreamCaptureModeRelaxed), {"9", hipStreamCaptureMode(9)}});
    static hipStream_t captured;
    each("hipStreamBeginCapture_spt", [](hipStream_t on, hipStreamCaptureMode mode) { return captured = on, hipStreamBeginCapture_spt(on, mode); }, [] {
        note("end", int(hipStreamEndCapture_spt(captured, &results.graph)));
        if (results.graph != nullptr) hipGraphDestroy(results.graph);
    }, streams, modes);
    each("hipStreamEndCapture_spt", [](hipStream_t on, hipGraph_t* to) { return hipStreamEndCapture_spt(on, to); }, nothing, streams, any<hipGraph_t*>({OF(&r.graph), OF(nullptr)}));
    auto status = reinterpret_cast<hipStreamCaptureStatus*>(&r.number);
    for (bool is_capturing : {false, true}) {
        if (is_capturing) hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed);
        each("hipStreamIsCapturing_spt", [](hipStream_t on, hipStreamCaptureStatus* to) { return hipStreamIsCapturing_spt(on, to); }, nothing, streams, any<hipStreamCaptureStatus*>({{"&r.number", status}, OF(nullptr)}));
        each("hipStreamGetCaptureInfo_spt", [](hipStream_t on, hipStreamCaptureStatus* to, unsigned long long* id) {
            const hipError_t error = hipStreamGetCaptureInfo_spt(on, to, id);
            if (id != nullptr && results.id < 1000) results.id = 1;
            return error;
        }, nothing, streams, any<hipStreamCaptureStatus*>({{"&r.number", status}, OF(nullptr)}), any<unsigned long long*>({OF(&r.id), OF(nullptr)}));
        each("hipStreamGetCaptureInfo_v2_spt", [](hipStream_t on, hipStreamCaptureStatus* to, unsigned long long* id, hipGraph_t* into, size_t* number) {
            const hipGraphNode_t* nodes = nullptr;
            const hipError_t error = hipStreamGetCaptureInfo_v2_spt(on, to, id, into, &nodes, number);
            if (id != nullptr && results.id < 1000) results.id = 1;
            return error;
        }, nothing, streams, any<hipStreamCaptureStatus*>({{"&r.number", status}, OF(nullptr)}), any<unsigned long long*>({OF(&r.id), OF(nullptr)}), any<hipGraph_t*>({OF(&r.graph), OF(nullptr)}), any<size_t*>({OF(&r.size), OF(nullptr)}));
        if (is_capturing) hipStreamEndCapture(stream, &graph);
    }
    return 0;
}
